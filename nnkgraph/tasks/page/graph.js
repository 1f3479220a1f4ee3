// The graph on a canvas: edges, in the color of a class inside it, then nodes. While it
// moves only the heaviest edges are drawn; all of them once it rests.
const MOVING_EDGES = 20000, SHADES = [0.15, 0.5, 1], NEAR = 14, PATH = 2000;

class View {
  constructor(graph) {
    this.graph = graph;
    this.canvas = byId("graph");
    this.marks = byId("marks");
    this.n = graph.n;
    [this.px, this.py] = [graph.x, graph.y];
    [this.sx, this.sy] = [new Float32Array(this.n), new Float32Array(this.n)];
    this.hovered = this.pinned = -1;
    this.chosen = new Set();
    this.layers = [];
    this.names = true;
    this.links = this.linksOf(graph);
    this.coloring = alike();
    this.styled();
    new ResizeObserver(() => this.resized()).observe(byId("stage"));
    this.resized();
  }

  // Each node's edges, heaviest first: a directed one belongs to where it begins.
  linksOf({ source, target, directed }) {
    const links = Array.from({ length: this.n }, () => []);
    for (let edge = 0; edge < source.length; edge++) {
      links[source[edge]].push(edge);
      if (!directed) links[target[edge]].push(edge);
    }
    return links;
  }

  paint(coloring) {
    this.coloring = coloring;
    this.chosen.clear();
    this.styled();
    this.draw();
  }

  choose(code) {
    if (!this.chosen.delete(code)) this.chosen.add(code);
    this.styled();
    this.draw();
  }

  // Which nodes and edges are drawn alike: those that were not chosen first, faintly.
  styled() {
    const { colors, of, has, grouped } = this.coloring, { source, target } = this.graph;
    const count = colors.length, all = !this.chosen.size;
    const style = new Uint8Array(this.n);
    this.lit = new Uint8Array(this.n);
    this.members = Array.from({ length: 2 * count }, () => []);
    for (let node = 0; node < this.n; node++) {
      style[node] = of(node, this.chosen);
      this.lit[node] = all || has(node, this.chosen);
      if (!Number.isNaN(this.px[node])) this.members[style[node] + count * this.lit[node]].push(node);
    }
    this.style = style;
    this.bundles = Array.from({ length: 2 * (count + 1) }, () => []);
    for (let edge = 0; edge < source.length; edge++) {
      const one = source[edge], two = target[edge];
      const own = style[one] === style[two] && (style[one] < grouped || style[one] === NAMED + 2);
      this.bundles[(own ? style[one] : count) + (count + 1) * (this.lit[one] & this.lit[two])].push(edge);
    }
    this.anchors = null;
  }

  resized() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    const first = !this.width;
    [this.width, this.height] = [box.width || 1, box.height || 1];
    for (const canvas of [this.canvas, this.marks]) {
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    const before = this.base, turned = this.turn();
    this.base = this.baseOf();
    if (first || turned) this.fit();
    else {
      this.scale *= this.base / before;
      this.draw();
    }
  }

  // A layout is as good on its side, where the screen is higher than wide.
  turn() {
    if (!this.graph.turns) return false;
    const upright = this.height > 1.1 * this.width, before = this.px;
    [this.px, this.py] = upright ? [this.graph.y, this.graph.x] : [this.graph.x, this.graph.y];
    this.extent = null;
    return before !== this.px;
  }

  bounds() {
    if (this.extent) return this.extent;
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let node = 0; node < this.n; node++) {
      const x = this.px[node], y = this.py[node];
      if (Number.isNaN(x)) continue;
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < low) low = y;
      if (y > high) high = y;
    }
    this.extent = { left, right, low, high };
    return this.extent;
  }

  baseOf() {
    const { left, right, low, high } = this.bounds();
    const room = Math.max(14, Math.min(28, this.width / 24));
    return Math.min((this.width - 2 * room) / (right - left || 1), (this.height - 2 * room) / (high - low || 1));
  }

  fit() {
    const { left, right, low, high } = this.bounds();
    [this.x, this.y, this.scale] = [(left + right) / 2, (low + high) / 2, this.base];
    this.draw();
  }

  where(node) {
    return [
      this.width / 2 + (this.px[node] - this.x) * this.scale,
      this.height / 2 - (this.py[node] - this.y) * this.scale,
    ];
  }

  // Where all nodes are on the screen: asked for many times a second.
  project() {
    const { px, py } = this, [dx, dy] = [this.width / 2, this.height / 2];
    for (let node = 0; node < this.n; node++) {
      this.sx[node] = dx + (px[node] - this.x) * this.scale;
      this.sy[node] = dy - (py[node] - this.y) * this.scale;
    }
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const scale = Math.min(this.base * 400, Math.max(this.base * 0.3, this.scale * factor));
    this.x += (px - this.width / 2) * (1 / this.scale - 1 / scale);
    this.y -= (py - this.height / 2) * (1 / this.scale - 1 / scale);
    this.scale = scale;
    this.moved();
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    this.moved();
  }

  moved() {
    this.draw(true);
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.draw(), 160);
  }

  draw(moving = false) {
    if (this.asked) cancelAnimationFrame(this.asked);
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.project();
      this.drawEdges(moving);
      this.drawNodes();
      this.drawMarks();
    });
    byId("zoom").textContent = `${Math.round((100 * this.scale) / this.base)} %`;
  }

  drawEdges(moving) {
    const ink = this.canvas.getContext("2d"), { colors } = this.coloring;
    const m = this.graph.source.length, count = colors.length + 1, edge = color("--edge");
    ink.clearRect(0, 0, this.width, this.height);
    const most = moving ? Math.min(MOVING_EDGES, m) : m;
    const crowd = Math.min(1, Math.max(0.22, Math.sqrt(3500 / (m + 1))));
    const zoomed = Math.min(2.4, (this.scale / this.base) ** 0.6);
    this.bundles.forEach((bundle, at) => {
      const lit = at >= count, style = at % count, cross = style === count - 1;
      ink.strokeStyle = cross ? `rgb(${edge})` : colors[style];
      const strength = (cross ? (this.coloring.grouped ? 0.17 : 0.5) : 0.75) * crowd * zoomed * (lit ? 1 : 0.16);
      ink.lineWidth = Math.min(1.5, 0.7 * Math.sqrt(zoomed));
      let from = 0;
      SHADES.forEach((share, shade) => {
        ink.globalAlpha = Math.min(0.8, strength * [1, 0.75, 0.5][shade]);
        from = this.stroke(ink, bundle, from, Math.min(share * m, most));
      });
    });
    ink.globalAlpha = 1;
  }

  // Draw the edges of a bundle from one on, up to those with this number.
  stroke(ink, bundle, from, end) {
    const { source, target } = this.graph, { sx, sy, width, height } = this;
    ink.beginPath();
    let at = from;
    for (let count = 0; at < bundle.length && bundle[at] < end; at++) {
      const one = source[bundle[at]], two = target[bundle[at]];
      const ax = sx[one], ay = sy[one], bx = sx[two], by = sy[two];
      if ((ax < 0 && bx < 0) || (ay < 0 && by < 0) || (ax > width && bx > width) || (ay > height && by > height)) continue;
      if (Number.isNaN(ax + bx)) continue;
      ink.moveTo(ax, ay);
      ink.lineTo(bx, by);
      if (++count % PATH === 0) {
        ink.stroke();
        ink.beginPath();
      }
    }
    ink.stroke();
    return at;
  }

  radius() {
    const base = Math.min(5, Math.max(1.25, 140 / Math.sqrt(this.n)));
    return base * Math.min(2.4, Math.max(0.8, (this.scale / this.base) ** 0.4)) * (this.width < 500 ? 0.8 : 1);
  }

  drawNodes() {
    const ink = this.canvas.getContext("2d"), { colors } = this.coloring;
    const r = this.radius(), rim = color("--panel"), ratio = window.devicePixelRatio || 1;
    this.members.forEach((nodes, at) => {
      ink.beginPath();
      for (const node of nodes) {
        const x = this.sx[node], y = this.sy[node];
        if (x < -r || y < -r || x > this.width + r || y > this.height + r) continue;
        if (r * ratio < 1.8) ink.rect(x - r, y - r, 2 * r, 2 * r);  // nobody sees the corners
        else {
          ink.moveTo(x + r, y);
          ink.arc(x, y, r, 0, 2 * Math.PI);
        }
      }
      ink.globalAlpha = at < colors.length ? 0.13 : 1;
      ink.fillStyle = colors[at % colors.length];
      ink.fill();
      if (r > 3) {
        ink.strokeStyle = rim;
        ink.lineWidth = 0.7;
        ink.stroke();
      }
    });
    ink.globalAlpha = 1;
  }

  // Where the names of the largest or the chosen classes stand: amid their nodes.
  labels() {
    const { entries, has } = this.coloring;
    if (!entries) return [];
    if (this.anchors) return this.anchors;
    const wanted = this.chosen.size ? entries.filter((one) => this.chosen.has(one.code)) : entries.slice(0, NAMED);
    this.anchors = wanted.flatMap((entry) => {
      const own = new Set([entry.code]), nodes = [];
      for (let node = 0; node < this.n; node++) if (has(node, own) && !Number.isNaN(this.px[node])) nodes.push(node);
      if (!nodes.length) return [];
      const middle = (values) => nodes.map((node) => values[node]).sort((a, b) => a - b)[nodes.length >> 1];
      const [x, y] = [middle(this.px), middle(this.py)];
      const far = (node) => (this.px[node] - x) ** 2 + (this.py[node] - y) ** 2;
      return [{ node: nodes.reduce((best, node) => (far(node) < far(best) ? node : best)), text: entry.text, style: entry.style }];
    });
    return this.anchors;
  }

  drawLabels(ink) {
    const taken = [], narrow = this.width < 500;
    ink.font = `600 ${narrow ? 11 : 13}px system-ui, "Liberation Sans", Arial, sans-serif`;
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    ink.lineJoin = "round";
    for (const { node, text } of this.labels()) {
      const short = text.length > 26 ? `${text.slice(0, 24)}…` : text, [at, y] = this.where(node);
      const half = ink.measureText(short).width / 2 + 3;
      if (at < 0 || at > this.width || y < 0 || y > this.height) continue;
      const x = Math.max(half, Math.min(this.width - half, at));
      if (taken.some(([ox, oy, other]) => Math.abs(ox - x) < other + half && Math.abs(oy - y) < 16)) continue;
      taken.push([x, y, half]);
      ink.strokeStyle = color("--panel");
      ink.lineWidth = 4;
      ink.strokeText(short, x, y);
      ink.fillStyle = color("--ink");
      ink.fillText(short, x, y);
    }
  }

  // Findings: rings of a shape for each kind, and lines between twins.
  drawLayers(ink) {
    const r = Math.max(3.6, this.radius() + 2);
    for (const layer of this.layers) {
      if (!layer.on) continue;
      for (const [stroke, wide] of [[color("--panel"), 2.6], [color("--ink"), 1.1]]) {
        ink.strokeStyle = stroke;
        ink.lineWidth = wide;
        ink.beginPath();
        for (const { node, other } of layer.marked) {
          if (node < 0) continue;
          const [x, y] = this.where(node);
          ring(ink, layer.shape, x, y, r);
          if (layer.shape === "circle" && other >= 0) {
            const [ox, oy] = this.where(other);
            ring(ink, layer.shape, ox, oy, r);
            ink.moveTo(x, y);
            ink.lineTo(ox, oy);
          }
        }
        ink.stroke();
      }
    }
  }

  // What lies above: layers, names, and the node that is pointed at with its neighbors.
  drawMarks() {
    const ink = this.marks.getContext("2d");
    ink.clearRect(0, 0, this.width, this.height);
    this.drawLayers(ink);
    const node = this.active();
    if (node < 0 && this.names) this.drawLabels(ink);
    if (node < 0) return;
    const r = Math.max(4, this.radius() + 1.5), [x, y] = this.where(node);
    ink.strokeStyle = ink.fillStyle = color("--ink");
    for (const edge of this.links[node]) {
      const [ox, oy] = this.where(this.other(edge, node));
      ink.lineWidth = 1 + 2 * Math.sqrt(this.graph.weight[edge] / (this.graph.weight[0] || 1));
      ink.beginPath();
      ink.moveTo(x, y);
      ink.lineTo(ox, oy);
      ink.stroke();
      ink.lineWidth = 1.5;
      ink.beginPath();
      ink.arc(ox, oy, r, 0, 2 * Math.PI);
      ink.stroke();
    }
    ink.lineWidth = 3;
    ink.beginPath();
    ink.arc(x, y, r + 2, 0, 2 * Math.PI);
    ink.stroke();
    placeTip(x, y, this.width, this.height);
  }

  active() {
    return this.hovered >= 0 ? this.hovered : this.pinned;
  }

  other(edge, node) {
    return this.graph.source[edge] === node ? this.graph.target[edge] : this.graph.source[edge];
  }

  nearest(px, py) {
    let best = -1, least = NEAR * NEAR;
    for (let node = 0; node < this.n; node++) {
      const dx = this.sx[node] - px, dy = this.sy[node] - py;
      const far = dx * dx + dy * dy;
      if (far < least) {
        best = node;
        least = far;
      }
    }
    return best;
  }

  point(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    showTip(this, node);
    this.drawMarks();
  }

  pin(node) {
    this.pinned = node;
    this.hovered = -1;
    showTip(this, -1);
    showNode(this, node);
    this.drawMarks();
  }

  visit(node) {
    [this.x, this.y] = [this.px[node], this.py[node]];
    this.scale = Math.max(this.scale, 4 * this.base);
    this.draw();
    this.pin(node);
  }
}

function ring(ink, shape, x, y, r) {
  if (shape === "circle") {
    ink.moveTo(x + r, y);
    ink.arc(x, y, r, 0, 2 * Math.PI);
  } else if (shape === "square") ink.rect(x - r, y - r, 2 * r, 2 * r);
  else {
    ink.moveTo(x, y - 1.3 * r);
    ink.lineTo(x + 1.3 * r, y);
    ink.lineTo(x, y + 1.3 * r);
    ink.lineTo(x - 1.3 * r, y);
    ink.closePath();
  }
}
