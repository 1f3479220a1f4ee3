// The page, put together.
byId("lead").textContent = report.lead;
for (const [name, value] of report.tiles) {
  const tile = make("div");
  tile.append(make("dt", name), make("dd", shown(value)));
  byId("tiles").append(tile);
}
byId("verdict").textContent = `${{ good: "✓ ", bad: "✗ ", unknown: "" }[report.proof.state]}${report.proof.text}`;
byId("verdict").className = report.proof.state;
if (report.checks) {
  const checks = table(["check", "result", "found"], report.checks);
  for (const cell of checks.querySelectorAll("td:nth-child(2)")) {
    cell.className = { ok: "good", FAILED: "bad" }[cell.textContent] || "";
  }
  const scroll = make("div", null, { class: "scroll", tabindex: "0", role: "group", "aria-label": "Checks" });
  scroll.append(checks);
  byId("checks").append(make("p", report.checked, { class: "quiet" }), scroll);
}
byId("charts").append(...report.charts.map(histogram));
for (const group of report.groups) {
  const box = make("div", null, { class: "panel" });
  const scroll = make("div", null, { class: "scroll", tabindex: "0", role: "group", "aria-label": group.title });
  scroll.append(table(group.head, group.rows));
  box.append(make("h2", group.title), make("p", group.text, { class: "quiet" }), scroll);
  byId("groups").append(box);
}
byId("parameters").append(
  report.parameters.length ? table(null, report.parameters) : make("p", "The file does not say how it was made."),
);
byId("foot").textContent = report.foot;
byId("caption").textContent = report.caption;

function colorings(graph) {
  const degree = new Uint32Array(graph.x.length);
  for (const ends of [graph.source, graph.target]) for (const node of ends) degree[node]++;
  const found = {};
  if (graph.label) {
    const counts = graph.classes.map(() => 0);
    for (const code of graph.label) if (code >= 0) counts[code]++;
    found.label = () => byClass(graph.label, graph.classes, counts, "no label");
  }
  if (graph.error) found["error J"] = () => byValue(graph.error, "error J");
  found.degree = () => byValue(degree, "degree");
  if (graph.sizes.length > 1) {
    const names = graph.sizes.map((_, at) => `component ${at + 1}`);
    found.component = () => byClass(graph.component, names, graph.sizes, "smaller ones");
  }
  found.nothing = alike;
  return found;
}

function showLegend(view) {
  const legend = byId("legend"), { range, entries, styles } = view.coloring;
  legend.replaceChildren();
  if (range) {
    const bar = make("span", null, { class: "ramp", role: "img", "aria-label": `${range.name} from dark to light` });
    bar.style.background = `linear-gradient(to right, ${RAMP.join(", ")})`;
    legend.append(make("span", `${range.name} ${shown(+range.low)}`), bar, make("span", shown(+range.high)));
    return;
  }
  for (const entry of entries) {
    const button = make("button", null, { type: "button", "aria-pressed": "false", title: "Show only these" });
    button.append(swatch(styles[entry.style]), make("span", `${entry.text} (${shown(entry.count)})`));
    button.addEventListener("click", () => {
      view.only = view.only === entry.style ? -1 : entry.style;
      for (const one of legend.children) one.setAttribute("aria-pressed", String(view.only >= 0 && one === button));
      view.draw();
    });
    legend.append(button);
  }
}

let view = null;
if (report.graph) {
  const packed = report.graph, graph = { ...packed };
  for (const part of ["x", "y", "source", "target", "weight", "error", "label", "component"]) graph[part] = unpack(packed[part]);
  byId("graph").setAttribute("aria-label", report.lead);
  view = new View(graph);
  const ways = colorings(graph), choice = byId("color");
  for (const name of Object.keys(ways)) choice.append(make("option", name, { value: name }));
  const paint = () => {
    view.paint(ways[choice.value]());
    showLegend(view);
  };
  choice.addEventListener("change", paint);
  DARK.addEventListener("change", paint);
  paint();
  listen(view);
} else {
  for (const id of ["tools", "stage", "help", "legend"]) byId(id).remove();
}
