"use strict";
// What the file carries, and small helpers. Text only ever becomes text: nothing that a
// user named is read as HTML.
const report = JSON.parse(document.getElementById("data").textContent);
const KINDS = { f4: Float32Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array };

function unpack(packed) {
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.data), (one) => one.charCodeAt(0));
  const found = new KINDS[packed.kind](bytes.buffer);
  if (packed.low === undefined) return found;
  // Two bytes hold the logarithm of a number, and 0 is 0.
  const step = (packed.high - packed.low) / 65534;
  return Float32Array.from(found, (one) => (one ? Math.exp(packed.low + (one - 1) * step) : 0));
}

function places(packed) {
  return Float32Array.from(unpack(packed), (one) => (one === 65535 ? NaN : one / 65534 - 0.5));
}

function byId(id) {
  return document.getElementById(id);
}

function make(name, text, attributes = {}) {
  const node = document.createElement(name);
  if (text !== undefined && text !== null) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function drawn(name, attributes = {}, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function shown(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(+value.toPrecision(4));
}

function table(head, rows) {
  const made = make("table");
  const numbers = (rows[0] || []).map((one) => typeof one === "number" || /^[\d.]+ %$/.test(one));
  if (head) {
    const line = made.createTHead().insertRow();
    head.forEach((text, at) => line.append(make("th", text, { scope: "col", class: numbers[at] ? "number" : "" })));
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value, at) => {
      const header = at === 0 && !numbers[0];
      const cell = make(header ? "th" : "td", null, header ? { scope: "row" } : {});
      cell.append(value instanceof Node ? value : shown(value));
      if (numbers[at]) cell.className = "number";
      line.append(cell);
    });
  }
  return made;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// By day and night: as the system has it, until somebody says otherwise.
const DARK = matchMedia("(prefers-color-scheme: dark)");
const dark = () => document.documentElement.dataset.theme === "dark";

function setTheme(night) {
  document.documentElement.dataset.theme = night ? "dark" : "light";
  byId("theme").textContent = night ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Switch to ${night ? "light" : "dark"} colors`);
  byId("theme").setAttribute("aria-pressed", String(night));
}

setTheme(DARK.matches);
