// What hands do to the graph: mouse, fingers and keys; and what is said about a node.
const LISTED = 8, LISTED_NARROW = 4, NARROW = 500;

function nameOf(graph, node) {
  return graph.ids ? graph.ids[node] : `node ${node}`;
}

function showTip(view, node) {
  const tip = byId("tip"), { graph } = view;
  tip.hidden = node < 0;
  if (node < 0) return;
  const facts = [];
  if (graph.label) facts.push(["label", graph.label[node] < 0 ? "none" : graph.classes[graph.label[node]]]);
  if (graph.error) facts.push(["error J", shown(+graph.error[node])]);
  const edges = view.links[node], most = view.width < NARROW ? LISTED_NARROW : LISTED;
  facts.push([graph.directed ? "edges out" : "edges", edges.length]);
  const lines = [make("strong", nameOf(graph, node)), table(null, facts)];
  if (edges.length) {
    lines.push(make("div", edges.length > most ? `heaviest ${most} edges, by weight` : "edges, by weight", { class: "quiet" }));
    lines.push(table(null, edges.slice(0, most).map((edge) => [nameOf(graph, view.other(edge, node)), shown(graph.weight[edge])])));
  }
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
      view.point(view.nearest(...now));
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
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    find(view, byId("wanted"));
  });
  byId("wanted").addEventListener("input", () => byId("wanted").setCustomValidity(""));
}

function find(view, field) {
  const { graph } = view, text = field.value.trim();
  let node = graph.ids ? graph.ids.indexOf(text) : -1;
  if (node < 0 && /^\d+$/.test(text) && +text < view.n) node = +text;
  if (node < 0 || Number.isNaN(graph.x[node])) {
    field.setCustomValidity(node < 0 ? "There is no such node" : "This node has no place in the drawing");
    field.reportValidity();
    return;
  }
  view.visit(node);
}
