"use strict";
// What the file carries, and small helpers. Text only ever becomes text: nothing that a
// user named is read as HTML.
const report = JSON.parse(document.getElementById("data").textContent);
const KINDS = { f4: Float32Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array };

function unpack(packed) {
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.data), (one) => one.charCodeAt(0));
  return new KINDS[packed.kind](bytes.buffer);
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
      const cell = make(header ? "th" : "td", shown(value), header ? { scope: "row" } : {});
      if (numbers[at]) cell.className = "number";
      line.append(cell);
    });
  }
  return made;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const DARK = matchMedia("(prefers-color-scheme: dark)");
