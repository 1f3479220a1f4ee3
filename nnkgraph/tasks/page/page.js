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
  const found = {}, classes = graph.colorings.filter(({ name }) => name !== "component");
  for (const one of classes) found[one.name] = () => byClass(one, one.codes);
  if (graph.error) found["error J"] = () => byValue(graph.error, "error J");
  found.degree = () => byValue(graph.degree, "degree");
  for (const one of graph.colorings) if (!classes.includes(one)) found[one.name] = () => byClass(one, one.codes);
  found.nothing = alike;
  return found;
}

const packed = report.graph, graph = { ...packed, x: places(packed.x), y: places(packed.y) };
for (const part of ["source", "target", "weight", "distance", "error", "degree", "number"]) graph[part] = unpack(packed[part]);
graph.colorings = packed.colorings.map((one) => ({ ...one, codes: unpack(one.codes) }));
byId("graph").setAttribute("aria-label", report.lead);
const view = new View(graph), ways = colorings(graph), choice = byId("color");
for (const name of Object.keys(ways)) choice.append(make("option", name, { value: name }));
const paint = () => {
  byId("filter").value = "";
  view.paint(ways[choice.value]());
  showLegend(view);
};
choice.addEventListener("change", paint);
byId("filter").addEventListener("input", () => showLegend(view));
byId("names").addEventListener("change", () => {
  view.names = byId("names").checked;
  view.drawMarks();
});
const shift = (night) => {
  const chosen = new Set(view.chosen);
  setTheme(night);
  view.chosen = chosen;
  view.coloring = ways[choice.value]();
  view.styled();
  view.draw();
  showLegend(view);
};
byId("theme").addEventListener("click", () => shift(!dark()));
DARK.addEventListener("change", () => shift(DARK.matches));
paint();
if (report.findings) showFindings(view, report.findings);
listen(view);
