// The graph on a canvas: edges from heaviest to lightest, then nodes. While it moves only
// the heaviest edges are drawn; all of them once it rests.
const MOVING_EDGES = 15000, SHADES = 8, NEAR = 14, PATH = 4000;

class View {
  constructor(graph) {
    this.graph = graph;
    this.canvas = byId("graph");
    this.marks = byId("marks");
    this.n = graph.x.length;
    [this.sx, this.sy] = [new Float32Array(this.n), new Float32Array(this.n)];
    this.hovered = this.pinned = -1;
    this.only = -1;
    this.shades = this.shadesOf(graph.weight);
    this.links = this.linksOf(graph);
    this.coloring = alike();
    this.styled();
    new ResizeObserver(() => this.resized()).observe(byId("stage"));
    this.resized();
  }

  // Where each shade of the edges, which are sorted by weight, ends.
  shadesOf(weight) {
    const ends = [], largest = weight[0] || 1;
    for (let shade = 0, at = 0; shade < SHADES; shade++) {
      const least = shade === SHADES - 1 ? -1 : largest * ((SHADES - 1 - shade) / SHADES) ** 2;
      while (at < weight.length && weight[at] >= least) at++;
      ends.push(at);
    }
    return ends;
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
    this.only = -1;
    this.styled();
    this.draw();
  }

  styled() {
    this.members = this.coloring.styles.map(() => []);
    for (let node = 0; node < this.n; node++) {
      if (!Number.isNaN(this.graph.x[node])) this.members[this.coloring.of(node)].push(node);
    }
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
    const before = this.base;
    this.base = this.baseOf();
    if (first) this.fit();
    else {
      this.scale *= this.base / before;
      this.draw();
    }
  }

  bounds() {
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let node = 0; node < this.n; node++) {
      const x = this.graph.x[node], y = this.graph.y[node];
      if (Number.isNaN(x)) continue;
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < low) low = y;
      if (y > high) high = y;
    }
    return { left, right, low, high };
  }

  baseOf() {
    const { left, right, low, high } = this.bounds();
    const room = Math.max(16, Math.min(32, this.width / 12));
    return Math.min((this.width - 2 * room) / (right - left || 1), (this.height - 2 * room) / (high - low || 1));
  }

  fit() {
    const { left, right, low, high } = this.bounds();
    [this.x, this.y, this.scale] = [(left + right) / 2, (low + high) / 2, this.base];
    this.draw();
  }

  where(node) {
    return [
      this.width / 2 + (this.graph.x[node] - this.x) * this.scale,
      this.height / 2 - (this.graph.y[node] - this.y) * this.scale,
    ];
  }

  // Where all nodes are on the screen: asked for many times a second.
  project() {
    const { x, y } = this.graph, [dx, dy] = [this.width / 2, this.height / 2];
    for (let node = 0; node < this.n; node++) {
      this.sx[node] = dx + (x[node] - this.x) * this.scale;
      this.sy[node] = dy - (y[node] - this.y) * this.scale;
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
    const ink = this.canvas.getContext("2d");
    const { source, target } = this.graph, { sx, sy, width, height } = this;
    const most = moving ? Math.min(MOVING_EDGES, source.length) : source.length;
    ink.clearRect(0, 0, this.width, this.height);
    const crowd = Math.min(1, Math.max(0.3, 9000 / (source.length + 1)));
    const zoomed = Math.min(1.5, Math.sqrt(this.scale / this.base));
    for (let shade = 0, edge = 0; shade < SHADES; shade++) {
      const share = 1 - shade / SHADES;
      const dim = this.only >= 0 ? 0.35 : 1;
      ink.strokeStyle = `rgba(${color("--edge")}, ${Math.min(0.85, dim * zoomed * crowd * (0.14 + 0.62 * share))})`;
      ink.lineWidth = (0.5 + 0.9 * share) * Math.min(1.6, zoomed);
      const end = Math.min(this.shades[shade], most);
      ink.beginPath();
      for (let count = 0; edge < end; edge++) {
        const one = source[edge], two = target[edge];
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
    }
  }

  radius() {
    const base = Math.min(5, Math.max(1.6, 110 / Math.sqrt(this.n)));
    return base * Math.min(2.2, Math.max(0.8, (this.scale / this.base) ** 0.35)) * (this.width < 500 ? 0.8 : 1);
  }

  drawNodes() {
    const ink = this.canvas.getContext("2d");
    const r = this.radius();
    this.coloring.styles.forEach((style, at) => {
      ink.beginPath();
      for (const node of this.members[at]) {
        const x = this.sx[node], y = this.sy[node];
        if (x < -r || y < -r || x > this.width + r || y > this.height + r) continue;
        outline(ink, style.shape, x, y, r);
      }
      ink.globalAlpha = this.only >= 0 && this.only !== at ? 0.12 : 1;
      ink.fillStyle = style.color;
      ink.fill();
      if (r > 2.6) {
        ink.strokeStyle = color("--panel");
        ink.lineWidth = 0.8;
        ink.stroke();
      }
    });
    ink.globalAlpha = 1;
  }

  // The node that is pointed at, its edges and its neighbors.
  drawMarks() {
    const ink = this.marks.getContext("2d");
    ink.clearRect(0, 0, this.width, this.height);
    const node = this.active();
    if (node < 0) return;
    const r = Math.max(4, this.radius() + 1.5), [x, y] = this.where(node);
    ink.strokeStyle = ink.fillStyle = color("--ink");
    for (const edge of this.links[node]) {
      const [ox, oy] = this.where(this.other(edge, node));
      ink.lineWidth = 1 + 2.5 * Math.sqrt(this.graph.weight[edge] / (this.graph.weight[0] || 1));
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
    showTip(this, this.active());
    this.drawMarks();
  }

  pin(node) {
    this.pinned = node;
    this.hovered = -1;
    showTip(this, node);
    this.drawMarks();
  }

  visit(node) {
    [this.x, this.y] = [this.graph.x[node], this.graph.y[node]];
    this.scale = Math.max(this.scale, 4 * this.base);
    this.draw();
    this.pin(node);
  }
}
