// Beside the graph: what colors mean, and the node that was chosen.
const ANSWERS = 60, NEIGHBORS = 40;

function showLegend(view) {
  const { name, entries, others, range, named } = view.coloring, legend = byId("legend"), filter = byId("filter");
  const many = entries && entries.length > named;
  byId("key-title").textContent = !name ? "" : entries ? `${shown(entries.length)} ${entries.length === 1 ? name : plural(name)}` : name;
  filter.hidden = !many;
  if (many) {
    filter.placeholder = `Search ${plural(name)}`;
    filter.setAttribute("aria-label", filter.placeholder);
  }
  legend.replaceChildren();
  if (range) {
    const bar = make("div", null, { class: "ramp", role: "img", "aria-label": `${name} from ${shown(range.low)} to ${shown(range.high)}` });
    bar.style.background = `linear-gradient(to right, ${ramp().join(", ")})`;
    const ends = make("div", null, { class: "ends" });
    ends.append(...[range.low, `median ${shown(+range.median)}`, range.high].map((one) => make("span", shown(typeof one === "number" ? +one : one))));
    legend.append(bar, ends);
  }
  if (!entries) return;
  const text = filter.hidden ? "" : filter.value.trim().toLowerCase();
  const found = text ? entries.filter((one) => one.text.toLowerCase().includes(text)) : entries.slice(0, named);
  const kept = entries.filter((one) => view.chosen.has(one.code) && !found.includes(one));
  for (const entry of [...found.slice(0, ANSWERS), ...kept, ...(text ? [] : others)]) legend.append(legendEntry(view, entry));
  if (!found.length) legend.append(make("p", "Nothing is called so.", { class: "quiet" }));
  if (found.length > ANSWERS) legend.append(make("p", `${found.length - ANSWERS} more`, { class: "quiet" }));
}

function plural(name) {
  return name.endsWith("s") ? `${name}es` : `${name}s`;
}

function legendEntry(view, entry) {
  const pressed = view.chosen.has(entry.code);
  const button = make("button", null, { type: "button", "aria-pressed": String(pressed), title: entry.text });
  const dot = make("span", null, { class: "dot" });
  const { colors, named } = view.coloring;
  dot.style.background = colors[pressed && entry.code >= named ? NAMED + 2 : entry.style];
  button.append(dot, make("span", entry.text, { class: "text" }), make("span", shown(entry.count), { class: "count" }));
  button.addEventListener("click", () => {
    view.choose(entry.code);
    showLegend(view);
    const again = [...byId("legend").querySelectorAll("button")].find((one) => one.title === entry.text);
    if (again) again.focus({ preventScroll: true });
  });
  return button;
}

function factsOf(view, node) {
  const { graph } = view;
  const facts = graph.colorings
    .filter(({ name }) => name !== "component")
    .map((one) => [one.name, one.codes[node] < 0 ? one.none[0] : one.classes[one.codes[node]]]);
  if (graph.error) facts.push(["error J", shown(+graph.error[node].toPrecision(4))]);
  const drawn = view.links[node].length, all = graph.degree[node];
  facts.push([graph.directed ? "edges out" : "edges", drawn === all ? shown(all) : `${shown(all)}, ${shown(drawn)} of them drawn`]);
  for (const layer of view.layers) {
    const row = layer.rows.find((one) => one.node === node);
    if (row) facts.push([layer.name, row.detail || shown(row.score)]);
  }
  return facts;
}

// The neighbors of a node, heaviest first: name, weight and distance.
function neighborsOf(view, node, most, cell) {
  const { graph } = view;
  const head = ["neighbor", "weight", ...(graph.distance ? ["distance"] : [])];
  const made = table(head, view.links[node].slice(0, most).map((edge) => {
    const other = view.other(edge, node);
    const row = [cell(other), +graph.weight[edge].toPrecision(3)];
    return graph.distance ? [...row, +graph.distance[edge].toPrecision(3)] : row;
  }));
  return made;
}

function nodeLink(view, node, text) {
  if (node < 0 || Number.isNaN(view.px[node])) return make("span", text);
  const link = make("button", text, { type: "button", class: "link" });
  link.addEventListener("click", () => {
    byId("stage").scrollIntoView({ block: "nearest" });
    view.visit(node);
  });
  return link;
}

function showNode(view, node) {
  const box = byId("node");
  box.hidden = node < 0;
  if (node < 0) return;
  const head = make("div", null, { class: "head" });
  const close = make("button", "×", { type: "button", "aria-label": "Let go" });
  close.addEventListener("click", () => view.pin(-1));
  head.append(make("h2", nameOf(view.graph, node)), close);
  const parts = [head, table(null, factsOf(view, node))];
  const count = view.links[node].length;
  if (count) {
    const scroll = make("div", null, { class: "scroll" });
    scroll.append(neighborsOf(view, node, NEIGHBORS, (other) => nodeLink(view, other, nameOf(view.graph, other))));
    parts.push(scroll);
  }
  if (count > NEIGHBORS) parts.push(make("p", `${count - NEIGHBORS} more`, { class: "quiet" }));
  box.replaceChildren(...parts);
  box.parentNode.scrollTop = 0;
}

const SHAPES = { "near-duplicate": "circle", outlier: "diamond", label: "square" };
const TITLES = { "near-duplicate": "Near-duplicates", outlier: "Outliers", label: "Suspicious labels" };
const FIRST_FINDINGS = 50;

function showFindings(view, layers) {
  byId("findings").hidden = false;
  const marks = { circle: "M12 4a8 8 0 1 1 0 16a8 8 0 1 1 0-16Z", diamond: "M12 3l9 9l-9 9l-9-9Z", square: "M5 5h14v14h-14Z" };
  for (const layer of layers) {
    layer.shape = SHAPES[layer.name];
    layer.on = layer.rows.length > 0;
    layer.marked = layer.rows.slice(0, FIRST_FINDINGS);
    const label = make("label"), box = make("input", null, { type: "checkbox" });
    box.checked = layer.on;
    box.addEventListener("change", () => {
      layer.on = box.checked;
      view.drawMarks();
    });
    const svg = drawn("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" });
    svg.append(drawn("path", { d: marks[layer.shape] }));
    const count = layer.marked.length < layer.count ? `${layer.marked.length} of ${shown(layer.count)}` : shown(layer.count);
    label.append(box, svg, make("span", TITLES[layer.name], { class: "what" }), make("span", count));
    if (layer.on) byId("layers").append(label);
    byId("found").append(findingTable(view, layer));
  }
  view.layers = layers;
  view.drawMarks();
}

function findingTable(view, layer) {
  const size = !layer.rows.length ? " empty" : layer.name === "near-duplicate" ? " wide" : "";
  const box = make("div", null, { class: `panel${size}` });
  const first = layer.rows.slice(0, FIRST_FINDINGS);
  const count = layer.count > first.length ? `the first ${first.length} of ${shown(layer.count)}` : shown(layer.count);
  box.append(make("h3", `${TITLES[layer.name]}: ${count}`));
  if (!first.length) return box;
  // A long name is cut, not broken; all of it is its title.
  const named = (node, text) => {
    const link = nodeLink(view, node, text);
    link.classList.add("name");
    link.title = text;
    return link;
  };
  const detail = (row) => make("div", row.detail, { class: "detail" });
  const node = (row) => named(row.node, row.id), score = (row) => (row.score === null ? null : +row.score.toPrecision(4));
  const twin = (row) => named(row.other, row.with);
  const ways = {
    "near-duplicate": [["row", "twin", "score", "detail"], (row) => [node(row), twin(row), score(row), detail(row)]],
    outlier: [["row", "score", "detail"], (row) => [node(row), score(row), detail(row)]],
    label: [["row", "label", "suggested", "score"], (row) => [node(row), row.label, row.suggested, score(row)]],
  };
  const [head, line] = ways[layer.name];
  const scroll = make("div", null, { class: "scroll", tabindex: "0", role: "group", "aria-label": TITLES[layer.name] });
  scroll.append(table(head, first.map(line)));
  box.append(scroll);
  return box;
}
