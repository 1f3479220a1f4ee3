// What hands do to the graph: mouse, fingers and keys; and what is said about a node.
const HITS = 8, LISTED = 8, LISTED_NARROW = 4, NARROW = 500;

function nameOf(graph, node) {
  return graph.ids ? graph.ids[node] : `node ${graph.number ? graph.number[node] : node}`;
}

function showTip(view, node) {
  const tip = byId("tip");
  tip.hidden = node < 0;
  if (node < 0) return;
  const most = view.width < NARROW ? LISTED_NARROW : LISTED, count = view.links[node].length;
  const lines = [make("strong", nameOf(view.graph, node)), table(null, factsOf(view, node))];
  if (count) lines.push(neighborsOf(view, node, most, (other) => nameOf(view.graph, other)));
  if (count > most) lines.push(make("div", `and ${count - most} more`, { class: "quiet" }));
  tip.replaceChildren(...lines);
}

function placeTip(x, y, width, height) {
  const tip = byId("tip"), gap = 16;
  const [w, h] = [tip.offsetWidth, tip.offsetHeight];
  if (width < NARROW) {  // along the far side: beside the node there is no room
    tip.style.left = "4px";
    tip.style.top = `${y < height / 2 ? height - h - 4 : 4}px`;
    return;
  }
  const left = x + gap + w < width ? x + gap : x - gap - w;
  tip.style.left = `${Math.max(4, Math.min(left, width - w - 4))}px`;
  tip.style.top = `${Math.max(4, Math.min(y - h / 3, height - h - 4))}px`;
}

function listen(view) {
  const canvas = view.canvas, held = new Map();
  let travelled = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, place(event));
    travelled = held.size > 1 ? Infinity : 0;
    canvas.classList.add("moving");
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event), before = held.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") view.point(view.nearest(...now));
      return;
    }
    if (held.size === 2) {
      const other = [...held].find(([id]) => id !== event.pointerId)[1];
      const far = (a) => Math.hypot(a[0] - other[0], a[1] - other[1]) || 1;
      view.zoom(far(now) / far(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else {
      view.pan(now[0] - before[0], now[1] - before[1]);
    }
    travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    held.set(event.pointerId, now);
  });
  const release = (event) => {
    if (!held.delete(event.pointerId)) return;
    if (!held.size) canvas.classList.remove("moving");
    if (event.type === "pointerup" && travelled < 5) view.pin(view.nearest(...place(event)));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => view.point(-1));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    view.zoom(Math.exp(-event.deltaY * lines * 0.0016), ...place(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = 40;
    const does = {
      ArrowLeft: () => view.pan(step, 0), ArrowRight: () => view.pan(-step, 0),
      ArrowUp: () => view.pan(0, step), ArrowDown: () => view.pan(0, -step),
      "+": () => view.zoom(1.4), "=": () => view.zoom(1.4), "-": () => view.zoom(1 / 1.4),
      0: () => view.fit(), Escape: () => view.pin(-1),
    }[event.key];
    if (!does || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    does();
  });
  byId("closer").addEventListener("click", () => view.zoom(1.5));
  byId("farther").addEventListener("click", () => view.zoom(1 / 1.5));
  byId("whole").addEventListener("click", () => view.fit());
  const field = byId("wanted"), hits = byId("hits");
  const close = () => { hits.hidden = true; };
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const [node] = search(view.graph, field.value.trim(), 1);
    if (node === undefined || Number.isNaN(view.px[node])) {
      field.setCustomValidity(node === undefined ? "There is no such node" : "This node has no place in the drawing");
      field.reportValidity();
      return;
    }
    close();
    view.visit(node);
  });
  field.addEventListener("input", () => {
    field.setCustomValidity("");
    const text = field.value.trim(), found = text ? search(view.graph, text, HITS) : [];
    hits.hidden = !found.length;
    hits.replaceChildren(...found.map((node) => {
      const item = make("li"), button = make("button", nameOf(view.graph, node), { type: "button" });
      button.addEventListener("click", () => {
        close();
        view.visit(node);
      });
      item.append(button);
      return item;
    }));
  });
  byId("find").addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const all = [field, ...hits.querySelectorAll("button")], at = all.indexOf(document.activeElement);
    const next = all[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (!next || hits.hidden) return;
    event.preventDefault();
    next.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!byId("find").contains(event.target)) close();
  });
}

// Nodes by name: the one that is called so, those that begin so, those that hold it.
function search(graph, text, most) {
  const n = graph.n, wanted = text.toLowerCase(), ranks = [[], [], []];
  if (!wanted) return [];
  for (let node = 0; node < n; node++) {
    const name = graph.ids ? graph.ids[node].toLowerCase() : String(graph.number ? graph.number[node] : node);
    const at = name.indexOf(wanted);
    if (name === wanted) ranks[0].push(node);
    else if (at >= 0 && ranks[at ? 2 : 1].length < most) ranks[at ? 2 : 1].push(node);
  }
  return ranks.flat().slice(0, most);
}
