// Charts over time with uPlot: a line for each series, or areas that are stacked.

import uPlot from "./vendor/uplot.js";
import { html, useEffect, useRef } from "./lib.js";

const HEIGHT = 150;
const isDark = matchMedia("(prefers-color-scheme: dark)");

const colours = () => {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
};

const STEP = 6; // size of a tile of a pattern
// What each series has besides its colour: lines of a tile from (x, y) to (x, y), as the classes s0 to s7 of the style
// sheet have them. An area without lines is plain; a dot is a short line.
const PATTERNS = [[], [[0, 6, 6, 0]], [[0, 3, 6, 3]], [[2.5, 3, 3.5, 3]], [[0, 0, 6, 6]], [[3, 0, 3, 6]], [[0, 3, 6, 3], [3, 0, 3, 6]], [[0, 3, 3, 0], [0, 6, 6, 0], [3, 6, 6, 3]]];
const DASHES = [[], [6, 4], [2, 3]]; // of lines

function pattern(context, place, colour, ink) {
  const tile = new OffscreenCanvas(STEP * devicePixelRatio, STEP * devicePixelRatio);
  const drawn = tile.getContext("2d");
  drawn.scale(devicePixelRatio, devicePixelRatio);
  drawn.fillStyle = colour;
  drawn.fillRect(0, 0, STEP, STEP);
  drawn.strokeStyle = ink;
  drawn.lineWidth = 1.5;
  for (const [fromX, fromY, toX, toY] of PATTERNS[place]) { drawn.beginPath(); drawn.moveTo(fromX, fromY); drawn.lineTo(toX, toY); drawn.stroke(); }
  return context.createPattern(tile, "repeat");
}

// Sums from below: what each area reaches up to. uPlot draws the first one first, so the largest sum comes first.
function stacked(values) {
  const sums = [];
  values.forEach((each, place) => sums.push(each.map((value, at) => (value ?? 0) + (place ? sums[place - 1][at] : 0))));
  return sums.reverse();
}

function options({ series, isStacked, format }, width) {
  const colour = colours();
  const axis = { stroke: colour("muted"), grid: { stroke: colour("rule"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width, height: HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [8, 28, 0, 0],
    scales: { y: { range: (_, __, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [{ ...axis, size: 28, values: (_, times) => times.map((time) => new Date(time * 1000).toLocaleTimeString("en-GB")), space: 90 },
      { ...axis, size: 56, values: (_, values) => values.map(format) }],
    series: [{}, ...series.map((_, at) => {
      const place = isStacked ? series.length - 1 - at : at;
      const own = colour(`s${place % PATTERNS.length}`);
      const fill = isStacked ? (plot) => pattern(plot.ctx, place % PATTERNS.length, own, colour("ink")) : undefined;
      return { stroke: isStacked ? colour("page") : own, width: 1.5, points: { show: false }, dash: isStacked ? undefined : DASHES[place % DASHES.length], fill };
    })],
  };
}

// `series` are [name, values] by time; `times` in seconds.
export function Chart({ label, times, series, isStacked = false, format = String }) {
  const box = useRef(null);
  const plot = useRef(null);
  const shape = `${isStacked}|${series.map(([name]) => name).join("|")}`;
  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options({ series, isStacked, format }, box.current.clientWidth), [[], ...series.map(() => [])], box.current);
    };
    draw();
    const observer = new ResizeObserver(([entry]) => plot.current?.setSize({ width: Math.floor(entry.contentRect.width), height: HEIGHT }));
    observer.observe(box.current);
    isDark.addEventListener("change", draw);
    return () => { observer.disconnect(); isDark.removeEventListener("change", draw); plot.current?.destroy(); plot.current = null; };
  }, [shape]);
  useEffect(() => {
    const values = series.map(([, each]) => each);
    plot.current?.setData([times, ...(isStacked ? stacked(values) : values)]);
  });
  return html`<div class="chart" role="img" aria-label=${label} ref=${box}></div>`;
}
