// Colors that color-blind readers tell apart too: Okabe and Ito's for few classes,
// Krzywinski's twelve for more; beyond that shapes differ as well.
const FEW = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"];
const MANY = [
  "#008df9", "#ff6e3a", "#009f81", "#a40122", "#ffb2fd", "#8400cd",
  "#00c2f9", "#ffc33b", "#00fccf", "#e20134", "#ff5aaf", "#9f0162",
];
const MANY_DARK = MANY.map((one) => ({ "#a40122": "#d4506a", "#8400cd": "#b25cf0", "#9f0162": "#cc4f9c" })[one] || one);
const SHAPES = ["circle", "triangle", "square", "diamond"];
// Viridis at nine places.
const RAMP = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const LEVELS = 24;

function ramp(share) {
  const at = Math.min(0.9999, Math.max(0, share)) * (RAMP.length - 1);
  const [low, high] = [RAMP[Math.floor(at)], RAMP[Math.floor(at) + 1]];
  const part = (text, from) => parseInt(text.slice(from, from + 2), 16);
  const mixed = [1, 3, 5].map((from) => Math.round(part(low, from) + (at % 1) * (part(high, from) - part(low, from))));
  return `rgb(${mixed.join(", ")})`;
}

// How nodes are colored: `of` gives each its style, `styles` their color and shape, and
// `entries` or `range` what the legend says.
function byClass(codes, names, counts, least) {
  const palette = names.length <= FEW.length ? FEW : DARK.matches ? MANY_DARK : MANY;
  const styles = names.map((_, at) => ({
    color: palette[at % palette.length], shape: SHAPES[Math.floor(at / palette.length) % SHAPES.length],
  }));
  styles.push({ color: color("--none"), shape: "circle" });
  const entries = names.map((name, at) => ({ style: at, text: name, count: counts[at] }));
  const without = codes.reduce((sum, code) => sum + (code < 0), 0);
  if (without) entries.push({ style: names.length, text: least, count: without });
  return { styles, entries, of: (node) => (codes[node] < 0 ? names.length : codes[node]) };
}

function byValue(values, name) {
  let [low, high] = [Infinity, -Infinity];
  for (const one of values) {
    low = Math.min(low, one);
    high = Math.max(high, one);
  }
  const styles = Array.from({ length: LEVELS }, (_, at) => ({ color: ramp(at / (LEVELS - 1)), shape: "circle" }));
  const width = high - low || 1;
  const of = (node) => Math.min(LEVELS - 1, Math.floor(((values[node] - low) / width) * LEVELS));
  return { styles, range: { low, high, name }, of };
}

function alike() {
  return { styles: [{ color: color("--accent"), shape: "circle" }], entries: [], of: () => 0 };
}

function outline(path, shape, x, y, r) {
  if (shape === "circle" && r < 2) {  // nobody sees the corners
    path.rect(x - r, y - r, 2 * r, 2 * r);
    return;
  }
  if (shape === "circle") {
    path.moveTo(x + r, y);
    path.arc(x, y, r, 0, 2 * Math.PI);
    return;
  }
  const corners = {
    triangle: [[0, -1.25], [1.15, 0.85], [-1.15, 0.85]],
    square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
    diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
  }[shape];
  corners.forEach(([dx, dy], at) => (at ? path.lineTo(x + r * dx, y + r * dy) : path.moveTo(x + r * dx, y + r * dy)));
  path.closePath();
}

function swatch(style) {
  const svg = drawn("svg", { viewBox: "-10 -10 20 20", "aria-hidden": "true" });
  const d = { circle: "M7 0A7 7 0 1 1-7 0A7 7 0 1 1 7 0Z", triangle: "M0-9L8 6H-8Z", square: "M-6-6H6V6H-6Z", diamond: "M0-9L9 0L0 9L-9 0Z" };
  svg.append(drawn("path", { d: d[style.shape], fill: style.color }));
  return svg;
}
