// Histograms: bars with a mean, and the same as a table.
const WIDE = 480, HIGH = 220, LEFT = 46, RIGHT = 10, TOP = 22, LOW = 42;

function ticks(low, high, count, whole) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  if (whole) step = Math.max(1, Math.round(step));
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(+at.toPrecision(12));
  return found;
}

function bin(chart, at) {
  const [low, high] = [chart.edges[at], chart.edges[at + 1]];
  if (!chart.whole) return `${shown(low)} to ${shown(high)}`;
  const [first, last] = [low + 0.5, high - 0.5];
  return first === last ? shown(first) : `${shown(first)} to ${shown(last)}`;
}

function histogram(chart) {
  const figure = make("figure");
  const title = make("h3", chart.title);
  const about = `${chart.of}: smallest ${shown(chart.min)}, median ${shown(chart.median)}, mean ${shown(chart.mean)}, largest ${shown(chart.max)}`;
  const svg = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": about });
  const [first, last] = [chart.edges[0], chart.edges[chart.edges.length - 1]];
  const most = Math.max(1, ...chart.counts);
  const x = (value) => LEFT + ((value - first) / (last - first)) * (WIDE - LEFT - RIGHT);
  const y = (count) => HIGH - LOW - (count / most) * (HIGH - LOW - TOP);
  for (const count of ticks(0, most, 4, true)) {
    svg.append(drawn("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y(count), y2: y(count), class: "axis" }));
    svg.append(drawn("text", { x: LEFT - 6, y: y(count) + 4, "text-anchor": "end" }, shown(count)));
  }
  chart.counts.forEach((count, at) => {
    const [left, right] = [x(chart.edges[at]), x(chart.edges[at + 1])];
    const bar = drawn("rect", {
      x: left + 0.5, width: Math.max(1, right - left - 1), y: y(count), height: y(0) - y(count), class: "bar",
    });
    bar.append(drawn("title", {}, `${bin(chart, at)}: ${shown(count)}`));
    svg.append(bar);
  });
  for (const value of ticks(first, last, 6, chart.whole)) {
    svg.append(drawn("text", { x: x(value), y: HIGH - LOW + 17, "text-anchor": "middle" }, shown(value)));
  }
  svg.append(drawn("text", { x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 6, "text-anchor": "middle" }, chart.of));
  const mean = x(chart.mean);
  svg.append(drawn("line", { x1: mean, x2: mean, y1: TOP - 8, y2: HIGH - LOW, class: "mean" }));
  const right = mean > WIDE * 0.7;
  svg.append(drawn("text", {
    x: mean + (right ? -5 : 5), y: TOP - 8, "text-anchor": right ? "end" : "start", class: "mean-text",
  }, `mean ${shown(chart.mean)}`));
  const more = make("details");
  const scroll = make("div", null, { class: "scroll", tabindex: "0", role: "group", "aria-label": `${chart.title} as a table` });
  const rows = chart.counts.map((count, at) => [bin(chart, at), count]).filter((row) => row[1]);
  scroll.append(table([chart.of, chart.counted], rows));
  more.append(make("summary", "As a table"), scroll);
  figure.append(title, make("p", `median ${shown(chart.median)}, from ${shown(chart.min)} to ${shown(chart.max)}`, { class: "quiet" }), svg, more);
  return figure;
}
