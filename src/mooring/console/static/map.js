// The map: one block for each node, grouped by zone. The level of a block, not only its colour, shows the share.
// Only blocks whose share has changed are drawn again.

import { html, useEffect, useRef, useState, nodeLink, count, plural } from "./lib.js";

const SIZES = [30, 26, 22, 18, 15, 12, 10, 8, 6, 5, 4, 3, 2];
const HEIGHT_MAX = 420;
const TITLE = 20;
const CORDONED = 1;
const TAINTED = 2;
const LEVEL_SIZE_MIN = 8; // smaller blocks have a colour only

const byName = new Intl.Collator("en", { numeric: true }).compare;

// Rows by zone, sorted by name.
function grouped(nodes) {
  const groups = nodes.zones.map((zone) => ({ zone, rows: [] }));
  nodes.zone.forEach((code, row) => groups[code].rows.push(row));
  groups.forEach((group) => group.rows.sort((a, b) => byName(nodes.names[a], nodes.names[b])));
  return groups;
}

// Where each row is drawn: the largest size with which everything fits.
function layout(groups, width, rowCount) {
  for (const size of SIZES) {
    const step = size + (size >= 6 ? 2 : size >= 4 ? 1 : 0);
    const columns = Math.max(1, Math.floor(width / step));
    const heights = groups.map((group) => TITLE + Math.ceil(group.rows.length / columns) * step + 8);
    const height = heights.reduce((sum, each) => sum + each, 0);
    if (height > HEIGHT_MAX && size > SIZES[SIZES.length - 1]) continue;
    const x = new Int32Array(rowCount);
    const y = new Int32Array(rowCount);
    const order = [];
    const titles = [];
    let top = 0;
    groups.forEach((group, index) => {
      titles.push({ y: top, group });
      group.rows.forEach((row, place) => {
        x[row] = (place % columns) * step;
        y[row] = top + TITLE + Math.floor(place / columns) * step;
        order.push(row);
      });
      top += heights[index];
    });
    return { size, step, columns, height, x, y, order, titles };
  }
  return null;
}

function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return { empty: read("--block"), fill: read("--fill"), over: read("--over"), text: read("--muted"), line: read("--text") };
}

class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.nodes = null;
  }

  // Draws what has changed; everything if the nodes, the metric, the width or the theme are others.
  update(nodes, metric, text, width) {
    const key = [nodes.facts, metric, text, width, devicePixelRatio, matchMedia("(prefers-color-scheme: dark)").matches].join("|");
    const shares = nodes.columns[metric];
    if (key !== this.key) {
      this.key = key;
      this.names = nodes.names;
      this.plan = layout(grouped(nodes), width, nodes.names.length);
      this.colours = palette();
      this.matches = text ? nodes.names.map((name) => name.includes(text)) : null;
      const { canvas, context, plan } = this;
      canvas.width = Math.round(width * devicePixelRatio);
      canvas.height = Math.round(plan.height * devicePixelRatio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${plan.height}px`;
      context.scale(devicePixelRatio, devicePixelRatio);
      context.font = "12px system-ui, sans-serif";
      context.textBaseline = "top";
      context.fillStyle = this.colours.text;
      for (const { y, group } of plan.titles) {
        context.fillText(`${group.zone ? `zone ${group.zone}` : "no zone"}, ${plural(group.rows.length, "node")}`, 0, y + 3);
      }
      plan.order.forEach((row) => this.block(row, shares[row], nodes.flags[row]));
    } else {
      for (let row = 0; row < shares.length; row += 1) {
        if (shares[row] !== this.shares[row] || nodes.flags[row] !== this.flags[row]) this.block(row, shares[row], nodes.flags[row]);
      }
    }
    this.shares = shares;
    this.flags = nodes.flags;
  }

  block(row, share, flags) {
    const { context, colours, plan } = this;
    const { size } = plan;
    const x = plan.x[row];
    const y = plan.y[row];
    context.globalAlpha = !this.matches || this.matches[row] ? 1 : 0.2;
    context.clearRect(x, y, size, size);
    context.fillStyle = colours.empty;
    context.fillRect(x, y, size, size);
    const part = Math.min(share, 100) / 100;
    context.fillStyle = share > 100 ? colours.over : colours.fill;
    if (size >= LEVEL_SIZE_MIN) {
      const level = Math.round(size * part);
      context.fillRect(x, y + size - level, size, level);
    } else {
      context.globalAlpha *= part;
      context.fillRect(x, y, size, size);
    }
    if (size >= LEVEL_SIZE_MIN && flags) {
      context.globalAlpha = 1;
      context.strokeStyle = colours.line;
      context.lineWidth = 1.5;
      context.beginPath();
      if (flags & CORDONED) { context.moveTo(x + 1, y + 1); context.lineTo(x + size - 1, y + size - 1); context.moveTo(x + size - 1, y + 1); context.lineTo(x + 1, y + size - 1); }
      else if (flags & TAINTED) { context.moveTo(x + 1, y + 6); context.lineTo(x + 6, y + 1); }
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  rowAt(x, y) {
    const { plan } = this;
    for (const { y: top, group } of plan.titles) {
      const line = Math.floor((y - top - TITLE) / plan.step);
      const column = Math.floor(x / plan.step);
      if (line < 0 || column < 0 || column >= plan.columns) continue;
      const place = line * plan.columns + column;
      if (place < group.rows.length && y < top + TITLE + Math.ceil(group.rows.length / plan.columns) * plan.step) return group.rows[place];
    }
    return -1;
  }
}

const describe = (nodes, row) => {
  const { cpu, memory, pods } = nodes.columns;
  const flags = nodes.flags[row];
  const state = `${flags & CORDONED ? ", cordoned" : ""}${flags & TAINTED ? ", tainted" : ""}`;
  return `${nodes.names[row]}: cpu ${cpu[row]} %, memory ${memory[row]} %, pods ${pods[row]} %${state}`;
};

export function NodeMap({ nodes, metric, text }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const drawing = useRef(null);
  const [width, setWidth] = useState(0);
  const [selected, setSelected] = useState(-1);

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!width) return;
    drawing.current ??= new Drawing(canvas.current);
    drawing.current.update(nodes, metric, text, width);
  }, [nodes, metric, text, width]);

  const row = selected < nodes.names.length ? selected : -1;
  const at = (event) => drawing.current?.rowAt(event.offsetX, event.offsetY) ?? -1;
  const open = (target) => { if (target >= 0) location.hash = nodeLink(nodes.names[target]); };
  const onKey = (event) => {
    const plan = drawing.current?.plan;
    if (!plan) return;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: plan.columns, ArrowUp: -plan.columns }[event.key];
    if (step) {
      event.preventDefault();
      const place = row < 0 ? 0 : Math.min(plan.order.length - 1, Math.max(0, plan.order.indexOf(row) + step));
      setSelected(plan.order[place]);
    } else if (event.key === "Enter") open(row);
  };
  return html`<div class="map" ref=${box}>
    <canvas ref=${canvas} tabindex="0" role="img" onKeyDown=${onKey}
      aria-label=${`Map of ${count(nodes.names.length)} nodes. Arrow keys select a node, Enter opens it.`}
      onMouseMove=${(event) => setSelected(at(event))} onClick=${(event) => open(at(event))}></canvas>
    <p class="hint" aria-live="polite">${row >= 0 ? describe(nodes, row) : "Point at a block, or select one with the arrow keys; click or Enter opens the node."}</p>
  </div>`;
}
