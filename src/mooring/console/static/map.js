// The map: one block for each node, in groups. The level of a block, not only its colour, shows the metric.
// Blocks with room for a level are drawn one by one, and only if they have changed. Smaller ones have a colour only:
// they are written as pixels, because a hundred thousand calls to a canvas take longer than a frame.

import { html, useEffect, useRef, useState, nodeLink, count, plural } from "./lib.js";

const SIZES = [30, 26, 22, 18, 15, 12, 10, 8, 6, 5, 4, 3, 2];
const HEIGHT_MAX = 420;
const TITLE = 20;
const CORDONED = 1;
const TAINTED = 2;
const LEVEL_SIZE_MIN = 8;

const largest = ({ cpu, memory, pods }, row) => Math.max(cpu[row], memory[row], pods[row]);

// Each metric is a level from 0 to 100, or more if more is requested than the node has: of cpu, memory and pods the
// largest share that is requested, or what is free of it.
export const METRICS = {
  requested: { text: "requested", level: largest },
  cpu: { text: "cpu requested", level: ({ cpu }, row) => cpu[row] },
  memory: { text: "memory requested", level: ({ memory }, row) => memory[row] },
  free: { text: "free", level: (columns, row) => Math.max(0, 100 - largest(columns, row)) },
  pods: { text: "pods", level: ({ pods }, row) => pods[row] },
  // What is left of one resource cannot be used without the other.
  fragmentation: { text: "fragmentation", level: ({ cpu, memory }, row) => Math.abs(Math.min(100, cpu[row]) - Math.min(100, memory[row])) },
};

function levelsOf(nodes, metric) {
  const { level } = METRICS[metric];
  const levels = new Uint8Array(nodes.names.length);
  for (let row = 0; row < levels.length; row += 1) levels[row] = level(nodes.columns, row);
  return levels;
}

// Rows sorted by name, numbers in names by value: node-9 comes before node-10.
function byName(names) {
  const keys = names.map((name) => name.replace(/\d+/g, (digits) => digits.padStart(9, "0")));
  const rows = Uint32Array.from(names.keys());
  return rows.sort((a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0));
}

// The rows from the highest level to the lowest; rows of the same level keep their order.
function byLevel(rows, levels) {
  const starts = new Uint32Array(257);
  for (let at = 0; at < rows.length; at += 1) starts[256 - levels[rows[at]]] += 1;
  for (let level = 1; level < 257; level += 1) starts[level] += starts[level - 1];
  const sorted = new Uint32Array(rows.length);
  for (let at = 0; at < rows.length; at += 1) { const bucket = 255 - levels[rows[at]]; sorted[starts[bucket]] = rows[at]; starts[bucket] += 1; }
  return sorted;
}

// Where groups are drawn, in the largest size of blocks with which everything fits.
function layout(sizesOfGroups, width) {
  for (const size of SIZES) {
    const step = size + (size >= 6 ? 2 : size >= 4 ? 1 : 0);
    const columns = Math.max(1, Math.floor(width / step));
    const tops = [];
    const starts = [];
    let top = 0;
    let start = 0;
    for (const rows of sizesOfGroups) {
      tops.push(top);
      starts.push(start);
      top += TITLE + Math.ceil(rows / columns) * step + 8;
      start += rows;
    }
    if (top <= HEIGHT_MAX || size === SIZES[SIZES.length - 1]) return { size, step, columns, tops, starts, height: top, counts: sizesOfGroups };
  }
  return null;
}

const channels = (hex) => (hex.length === 4 ? [1, 2, 3].map((at) => parseInt(hex[at] + hex[at], 16)) : [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
const mixed = (from, to, part) => from.map((value, at) => Math.round(value + (to[at] - value) * part));
const packed = ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red;

function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const colours = { empty: read("--block"), fill: read("--fill"), over: read("--over"), text: read("--muted"), line: read("--text"), page: read("--panel") };
  const [empty, fill, over, page] = [colours.empty, colours.fill, colours.over, colours.page].map(channels);
  const colour = (level) => (level > 100 ? over : mixed(empty, fill, level / 100));
  const pixels = Uint32Array.from({ length: 256 }, (_, level) => packed(colour(level)));
  const dimmed = Uint32Array.from({ length: 256 }, (_, level) => packed(mixed(page, colour(level), 0.2)));
  return { ...colours, pixels, dimmed, gap: packed(page) };
}

class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  // Draws what has changed; everything if the nodes, the metric, the order, the width or the theme are others.
  update(nodes, { metric, order, text, width }) {
    const levels = levelsOf(nodes, metric);
    const theme = matchMedia("(prefers-color-scheme: dark)").matches;
    const key = [nodes.facts, metric, order, text, width, devicePixelRatio, theme].join("|");
    const isOther = key !== this.key;
    if (isOther) {
      if (this.names !== nodes.names) { this.names = nodes.names; this.sorted = byName(nodes.names); }
      this.key = key;
      this.nodes = nodes;
      this.colours = palette();
      this.matches = text ? Uint8Array.from(nodes.names, (name) => name.includes(text)) : null;
      const sizes = new Array(nodes.groups.length).fill(0);
      for (const code of nodes.group) sizes[code] += 1;
      this.plan = layout(sizes, width);
      this.resize(width);
    }
    const isMoved = isOther || order === "level";
    if (isMoved) this.place(order === "level" ? byLevel(this.sorted, levels) : this.sorted, nodes.group);
    if (this.plan.size < LEVEL_SIZE_MIN) this.drawPixels(levels, width);
    else this.drawBlocks(levels, nodes.flags, isMoved);
    this.levels = levels;
    this.flags = nodes.flags;
  }

  resize(width) {
    const { canvas, context, plan } = this;
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(plan.height * devicePixelRatio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${plan.height}px`;
    context.scale(devicePixelRatio, devicePixelRatio);
    context.imageSmoothingEnabled = false;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "top";
    this.titles();
  }

  titles() {
    const { context, plan, nodes } = this;
    context.fillStyle = this.colours.text;
    plan.tops.forEach((top, code) => context.fillText(`${nodes.groups[code] || "no value"}: ${plural(plan.counts[code], "node")}`, 0, top + 3));
  }

  // The row at each place, and the place of each row.
  place(rows, group) {
    const { step, columns, starts, tops } = this.plan;
    if (this.order?.length !== rows.length) { this.order = new Uint32Array(rows.length); this.x = new Int32Array(rows.length); this.y = new Int32Array(rows.length); }
    const { order, x, y } = this;
    const next = Uint32Array.from(starts);
    const right = columns * step;
    const nextX = new Int32Array(starts.length);
    const nextY = Int32Array.from(tops, (top) => top + TITLE);
    for (let at = 0; at < rows.length; at += 1) {
      const row = rows[at];
      const code = group[row];
      order[next[code]] = row;
      next[code] += 1;
      x[row] = nextX[code];
      y[row] = nextY[code];
      nextX[code] += step;
      if (nextX[code] === right) { nextX[code] = 0; nextY[code] += step; }
    }
  }

  drawPixels(levels, width) {
    const { plan, context, x, y, matches } = this;
    const { size, height } = plan;
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = new ImageData(width, height);
      this.scratch = new OffscreenCanvas(width, height);
    }
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(0);
    const { pixels: bright, dimmed } = this.colours;
    for (let row = 0; row < levels.length; row += 1) {
      const colour = matches && !matches[row] ? dimmed[levels[row]] : bright[levels[row]];
      let at = y[row] * width + x[row];
      for (let line = 0; line < size; line += 1, at += width) for (let column = 0; column < size; column += 1) pixels[at + column] = colour;
      if (levels[row] > 100) pixels[y[row] * width + x[row]] = this.colours.gap; // a corner is missing, for those who do not see the colour
    }
    this.scratch.getContext("2d").putImageData(this.image, 0, 0);
    context.clearRect(0, 0, width, height);
    context.drawImage(this.scratch, 0, 0);
    this.titles();
  }

  drawBlocks(levels, flags, isEverything) {
    for (let row = 0; row < levels.length; row += 1) {
      if (isEverything || levels[row] !== this.levels[row] || flags[row] !== this.flags[row]) this.block(row, levels[row], flags[row]);
    }
  }

  block(row, level, flags) {
    const { context, colours, plan: { size } } = this;
    const x = this.x[row];
    const y = this.y[row];
    context.globalAlpha = !this.matches || this.matches[row] ? 1 : 0.2;
    context.clearRect(x, y, size, size);
    context.fillStyle = colours.empty;
    context.fillRect(x, y, size, size);
    const filled = Math.round((size * Math.min(level, 100)) / 100);
    context.fillStyle = level > 100 ? colours.over : colours.fill;
    context.fillRect(x, y + size - filled, size, filled);
    if (level > 100) this.exclamationMark(x, y);
    if (flags) {
      context.strokeStyle = colours.line;
      context.lineWidth = 1.5;
      context.beginPath();
      if (flags & CORDONED) { context.moveTo(x + 1, y + 1); context.lineTo(x + size - 1, y + size - 1); context.moveTo(x + size - 1, y + 1); context.lineTo(x + 1, y + size - 1); }
      else if (flags & TAINTED) { context.moveTo(x + 1, y + 6); context.lineTo(x + 6, y + 1); }
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  // More is requested than the node has: not only the colour says so.
  exclamationMark(x, y) {
    const { context, colours, plan: { size } } = this;
    const width = Math.max(2, Math.round(size / 8));
    const left = x + Math.round((size - width) / 2);
    context.fillStyle = colours.page;
    context.fillRect(left, y + Math.round(size * 0.15), width, Math.round(size * 0.4));
    context.fillRect(left, y + Math.round(size * 0.7), width, Math.max(1, Math.round(size * 0.15)));
  }

  rowAt(x, y) {
    const { plan } = this;
    const column = Math.floor(x / plan.step);
    if (column < 0 || column >= plan.columns) return -1;
    for (let code = 0; code < plan.tops.length; code += 1) {
      const line = Math.floor((y - plan.tops[code] - TITLE) / plan.step);
      const place = line * plan.columns + column;
      if (line >= 0 && place < plan.counts[code] && line < Math.ceil(plan.counts[code] / plan.columns)) return this.order[plan.starts[code] + place];
    }
    return -1;
  }
}

// What the colours and signs of a block say, in words.
export const describe = (nodes, row) => {
  const { cpu, memory, pods } = nodes.columns;
  const flags = nodes.flags[row];
  const state = `${largest(nodes.columns, row) > 100 ? ", above allocatable" : ""}${flags & CORDONED ? ", cordoned" : ""}${flags & TAINTED ? ", tainted" : ""}`;
  return `${nodes.names[row]}: cpu ${cpu[row]} %, memory ${memory[row]} %, pods ${pods[row]} % requested, fragmentation ${METRICS.fragmentation.level(nodes.columns, row)} %${state}`;
};

export const Legend = () => html`<span class="legend"><i class="empty"></i> 0 % <i class="full"></i> 100 % <i class="over">!</i> above allocatable, × cordoned, / tainted</span>`;

export function NodeMap({ nodes, metric, order, text }) {
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
    drawing.current.update(nodes, { metric, order, text, width });
  }, [nodes, metric, order, text, width]);

  useEffect(() => { // from anywhere on the page: ↑ and ↓ scroll it
    const enter = (event) => {
      if (event.target !== document.body || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
      canvas.current.focus();
      canvas.current.dispatchEvent(new KeyboardEvent("keydown", { key: event.key }));
    };
    addEventListener("keydown", enter);
    return () => removeEventListener("keydown", enter);
  }, []);
  const row = selected < nodes.names.length ? selected : -1;
  const at = (event) => drawing.current?.rowAt(event.offsetX, event.offsetY) ?? -1;
  const open = (target) => { if (target >= 0) location.hash = nodeLink(nodes.names[target]); };
  const onKey = (event) => {
    const map = drawing.current;
    if (!map) return;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: map.plan.columns, ArrowUp: -map.plan.columns }[event.key];
    if (step) {
      event.preventDefault();
      const place = row < 0 ? 0 : Math.min(map.order.length - 1, Math.max(0, map.order.indexOf(row) + step));
      setSelected(map.order[place]);
    } else if (event.key === "Enter") open(row);
  };
  const map = drawing.current;
  const size = map?.plan.size;
  return html`<div class="map" ref=${box}><div class="frame">
    <canvas ref=${canvas} tabindex="0" role="img" onKeyDown=${onKey}
      aria-label=${`Map of ${count(nodes.names.length)} nodes. Arrow keys select a node, Enter opens it.`}
      onMouseMove=${(event) => setSelected(at(event))} onMouseLeave=${() => setSelected(-1)} onClick=${(event) => open(at(event))}></canvas>
    ${row >= 0 && map?.x && html`<i class="cursor" style=${{ left: `${map.x[row] - 2}px`, top: `${map.y[row] - 2}px`, width: `${size + 4}px`, height: `${size + 4}px` }}></i>`}</div>
    <p class="hint" aria-live="polite">${row >= 0 ? describe(nodes, row) : "Point at a block, or select one with the arrow keys; click or Enter opens the node."}</p>
  </div>`;
}
