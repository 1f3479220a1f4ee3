// Colors: ten that color-blind readers tell apart too, for the largest classes; the
// others share one until they are chosen.
const LIGHT_TEN = ["#4252da", "#f3a516", "#0fa978", "#c239b1", "#4a95ff", "#3d890c", "#dea0eb", "#425413", "#bdb263", "#1b3a6b"];
const DARK_TEN = ["#3ca5fd", "#e5c109", "#23f8b1", "#ff60ae", "#954aaa", "#badb71", "#f5c2ff", "#a16d09", "#078b52", "#0061ea"];
const NAMED = 10;
// Viridis at nine places; its dark end is left out by night, its light end by day.
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const LEVELS = 24;

function ramp() {
  return dark() ? VIRIDIS.slice(2) : VIRIDIS.slice(0, 8);
}

function mixed(share) {
  const stops = ramp(), at = Math.min(0.9999, Math.max(0, share)) * (stops.length - 1);
  const [low, high] = [stops[Math.floor(at)], stops[Math.floor(at) + 1]];
  const part = (text, from) => parseInt(text.slice(from, from + 2), 16);
  const found = [1, 3, 5].map((from) => Math.round(part(low, from) + (at % 1) * (part(high, from) - part(low, from))));
  return `rgb(${found.join(", ")})`;
}

// How nodes are colored: `colors` by style, `of` gives each node its style, `has` says
// whether a node belongs to what was chosen of `entries`; `range` is of numbers.
function byClass({ name, classes, counts, none }, codes) {
  const ten = dark() ? DARK_TEN : LIGHT_TEN;
  const named = classes.length <= NAMED ? classes.length : NAMED;
  const [other, without, picked] = [NAMED, NAMED + 1, NAMED + 2];
  const colors = [...ten, color("--none"), color("--none"), color("--ink")];
  const entries = classes.map((text, at) => ({ code: at, text, count: counts[at], style: at < named ? at : other }));
  const rest = counts.slice(named).reduce((sum, one) => sum + one, 0);
  const more = classes.length - named;
  const others = more ? [{ code: "other", text: `${shown(more)} other${more > 1 ? "s" : ""}`, count: rest, style: other }] : [];
  if (none[1]) others.push({ code: -1, text: none[0], count: none[1], style: without });
  const has = (node, chosen) => chosen.has(codes[node]) || (codes[node] >= named && chosen.has("other"));
  const of = (node, chosen) => {
    const code = codes[node];
    if (code < 0) return without;
    if (code < named) return code;
    return chosen.has(code) ? picked : other;
  };
  return { name, colors, entries, others, named, of, has, grouped: named };
}

function byValue(values, name) {
  let [low, high] = [Infinity, -Infinity];
  for (const one of values) {
    low = Math.min(low, one);
    high = Math.max(high, one);
  }
  // Few values are large: half of the colors are for the lower half of the nodes.
  const sorted = Float64Array.from(values).sort();
  const cuts = Array.from({ length: LEVELS - 1 }, (_, at) => sorted[Math.floor(((at + 1) * sorted.length) / LEVELS)]);
  const colors = Array.from({ length: LEVELS }, (_, at) => mixed(at / (LEVELS - 1)));
  const of = (node) => {
    let [from, to] = [0, LEVELS - 1];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (values[node] >= cuts[middle]) from = middle + 1;
      else to = middle;
    }
    return from;
  };
  return { name, colors, range: { low, median: sorted[sorted.length >> 1], high }, of, has: () => true, grouped: 0 };
}

function alike() {
  return { name: "", colors: [color("--accent")], of: () => 0, has: () => true, grouped: 0 };
}
