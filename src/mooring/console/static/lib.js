// The libraries as the other modules use them, and small functions for texts and numbers.
// Texts of objects are always children or attributes of elements, which preact sets as text, never as HTML.

import { h, render } from "./vendor/preact.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { signal, computed, effect, batch } from "./vendor/signals.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export { render, signal, computed, effect, batch, useEffect, useRef, useState };

export const podLink = (key) => `#/pod/${key.split("/").map(encodeURIComponent).join("/")}`;
export const nodeLink = (name) => `#/node/${encodeURIComponent(name)}`;

const numbers = new Intl.NumberFormat("en");
export const count = (value) => numbers.format(value);
export const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

// A duration in its two largest units: 42 s, 3 min 5 s, 2 h 10 min.
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s}\u00a0s`;
  if (s < 3600) return `${Math.floor(s / 60)}\u00a0min ${s % 60}\u00a0s`;
  if (s < 86400) return `${Math.floor(s / 3600)}\u00a0h ${Math.floor((s % 3600) / 60)}\u00a0min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// A short duration with one unit: 12 ms, 3.4 s, 12 min.
export function shortDuration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)}\u00a0ms`;
  if (seconds < 60) return `${Number(seconds.toFixed(1))}\u00a0s`;
  return seconds < 3600 ? `${Math.round(seconds / 60)}\u00a0min` : `${Number((seconds / 3600).toFixed(1))}\u00a0h`;
}

// Times are compared with the server's, whose clock may differ from that of the browser.
export const secondsBetween = (from, to) => (Date.parse(to) - Date.parse(from)) / 1000;
export const timeOfDay = (time) => new Date(time).toLocaleTimeString("en-GB");

// The reasons of a rejection without what every message repeats: "53 Insufficient cpu, 6 node(s) had untolerated taint(s)".
export const shortReason = (message) => message.replace(/^0\/\d+ nodes are available: /, "").split(". ")[0].replace(/\.$/, "");

const UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

// An amount of a resource as Kubernetes writes it: cpu comes in millicores.
export function amount(resource, value) {
  if (resource === "cpu") return value % 1000 ? `${count(value)}m` : count(value / 1000);
  if (!/memory|storage|hugepages/.test(resource)) return count(value);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
  return `${Number(value.toFixed(1))}${UNITS[unit]}`;
}

// A share of a resource: a bar, and the number for those who do not see the bar.
export function Bar({ percent, label }) {
  const width = Math.min(100, Math.max(0, percent));
  return html`<div class="bar" role="img" aria-label=${label}>
    <div class=${percent > 100 ? "fill over" : "fill"} style=${{ width: `${width}%` }}></div></div>`;
}
