// The queue: pods that wait, with attempts, next attempt, reason and the events that may help. The list is virtual: only
// the rows in sight exist, and only a window around them is requested.

import { html, useEffect, useRef, useState, podLink, nodeLink, count, duration, secondsBetween, shortReason } from "./lib.js";
import { queue, queueState, queueOrder, queueWindow, filter, problem } from "./data.js";

const STATES = [["", "all"], ["active", "active"], ["backoff", "backoff"], ["unschedulable", "unschedulable"], ["gated", "gated"], ["in flight", "inFlight"], ["waiting for Permit", "waitingForPermit"], ["binding", "binding"]];
const COLUMNS = [["pod", "Pod"], ["state", "State"], ["waits", "Waits", "right"], ["attempts", "Attempts", "right"], ["next", "Next attempt"], ["reason", "Reason"], ["helps", "May help"]];
const WINDOW = 100;
const AROUND = 30; // rows that are requested before and after those in sight

function States({ counts }) {
  const total = Object.values(counts).reduce((sum, each) => sum + each, 0);
  const choose = (state) => { queueState.value = state; queueWindow.value = { offset: 0, limit: WINDOW }; };
  return html`<div class="states" role="group" aria-label="State">${STATES.map(([state, name]) => html`<button key=${state}
    aria-pressed=${queueState.value === state} onClick=${() => choose(state)}>
    ${state || "all"} <b>${count(state ? counts[name] : total)}</b></button>`)}</div>`;
}

function retry(row, now) {
  const time = row.backsOffUntil ?? row.retriedAtTheLatest;
  if (!time) return row.state === "active" ? "next" : "–";
  const seconds = secondsBetween(now, time);
  return seconds <= 0 ? "now" : `${row.backsOffUntil ? "in" : "within"} ${duration(seconds)}`;
}

const why = (row) => row.gatedBy ? `gated by ${row.gatedBy}`
  : row.reason ?? (row.rejectedBy ? `rejected by ${row.rejectedBy.join(", ")}` : row.waitsFor ? `waits for ${row.waitsFor.join(", ")}` : "–");

// A click sorts by the column, the next one in the other direction, the third one by arrival again.
function sortBy(name) {
  const { sort, descending } = queueOrder.value;
  if (sort !== name) queueOrder.value = { sort: name, descending: name === "waits" || name === "attempts" };
  else if (descending === (name === "waits" || name === "attempts")) queueOrder.value = { sort: name, descending: !descending };
  else queueOrder.value = { sort: "", descending: false };
}

function Head() {
  const { sort, descending } = queueOrder.value;
  return html`<thead><tr>${COLUMNS.map(([name, text, place]) => html`<th key=${name} class=${place} aria-sort=${sort === name ? (descending ? "descending" : "ascending") : undefined}>
    <button class="sort" onClick=${() => sortBy(name)}>${text}${sort === name ? (descending ? " ▼" : " ▲") : ""}</button></th>`)}</tr></thead>`;
}

// Narrow screens show cards, which have no head to click.
function SortChoice() {
  return html`<label class="narrow">Sort by <select value=${queueOrder.value.sort} onChange=${(event) => { queueOrder.value = { sort: event.target.value, descending: false }; }}>
    <option value="">arrival</option>${COLUMNS.map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}</select></label>`;
}

function Row({ row, now, place, isSelected }) {
  if (!row) return html`<tr aria-rowindex=${place + 2}><td colspan=${COLUMNS.length} class="hint">…</td></tr>`;
  if (!row.since) return html`<tr aria-rowindex=${place + 2}><td><a href=${podLink(row.pod)}>${row.pod}</a></td><td colspan=${COLUMNS.length - 1} class="hint">${row.state}</td></tr>`;
  return html`<tr aria-rowindex=${place + 2} class=${isSelected ? "selected" : ""}>
    <td title=${row.pod}><a href=${podLink(row.pod)}>${row.pod}</a>${row.priority ? html` <span class="hint">priority ${row.priority}</span>` : ""}</td>
    <td data-label="State">${row.state}${row.node && html` on <a href=${nodeLink(row.node)}>${row.node}</a>`}</td>
    <td class="right" data-label="Waits">${duration(secondsBetween(row.waitsSince, now))}</td>
    <td class="right" data-label="Attempts">${row.attempts}</td>
    <td data-label="Next">${retry(row, now)}</td>
    <td class="message" data-label="Reason" title=${why(row)}>${shortReason(why(row))}</td>
    <td class="message" data-label="May help" title=${row.awaits?.join(", ")}>${row.awaits?.join(", ") ?? "–"}</td></tr>`;
}

// The style sheet sets one height for all rows, and another one on narrow screens.
const heightOf = (body) => parseFloat(getComputedStyle(body).getPropertyValue("--row"));

// The rows in sight: [first, end).
function inSight(body, height, total) {
  const { top } = body.getBoundingClientRect();
  const first = Math.max(0, Math.floor(-top / height));
  return [Math.min(first, Math.max(0, total - 1)), Math.min(total, first + Math.ceil(innerHeight / height) + 1)];
}

function List({ page }) {
  const body = useRef(null);
  const [height, setHeight] = useState(0);
  const [[first, end], setSight] = useState([0, 30]);
  const [selected, setSelected] = useState(-1);
  const { total, offset, pods } = page;
  useEffect(() => {
    const look = () => {
      if (!body.current) return;
      const rowHeight = heightOf(body.current);
      setHeight(rowHeight);
      const sight = inSight(body.current, rowHeight, total);
      setSight((old) => (old[0] === sight[0] && old[1] === sight[1] ? old : sight));
      const window = queueWindow.value;
      if (sight[0] < window.offset || sight[1] > Math.min(total, window.offset + window.limit)) {
        queueWindow.value = { offset: Math.max(0, sight[0] - AROUND), limit: WINDOW };
      }
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => { removeEventListener("scroll", look); removeEventListener("resize", look); };
  }, [total]);
  const chosen = useRef(-1); // what `selected` will be: a key may come before the next drawing
  useEffect(() => {
    const onKey = (event) => {
      if (/^(INPUT|SELECT|TEXTAREA|BUTTON|A)$/.test(event.target.tagName)) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const row = queue.value.pods[chosen.current - queue.value.offset];
      if (event.key === "Enter" && row) location.hash = podLink(row.pod);
      if (!step) return;
      event.preventDefault();
      chosen.current = Math.min(queue.value.total - 1, Math.max(0, chosen.current + step));
      setSelected(chosen.current);
      const rowHeight = heightOf(body.current);
      const top = body.current.getBoundingClientRect().top + chosen.current * rowHeight;
      const covered = Math.max(0, document.querySelector("header").getBoundingClientRect().bottom);
      if (top < covered) scrollBy(0, top - covered);
      else if (top + rowHeight > innerHeight) scrollBy(0, top + rowHeight - innerHeight);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const places = Array.from({ length: Math.max(0, Math.min(end, total) - first) }, (_, at) => first + at);
  return html`<table class="cards virtual" aria-rowcount=${total + 1}><${Head} />
    <tbody ref=${body}><tr class="space" aria-hidden="true" style=${{ height: `${first * height}px` }}></tr>
      ${places.map((place) => html`<${Row} key=${place} place=${place} row=${pods[place - offset]} now=${page.now} isSelected=${place === selected} />`)}
      <tr class="space" aria-hidden="true" style=${{ height: `${Math.max(0, total - first - places.length) * height}px` }}></tr></tbody></table>`;
}

export function Queue() {
  const page = queue.value;
  if (!page) return !problem.value && html`<p class="loading">Loading …</p>`;
  return html`<h1>Queue</h1>
    <${States} counts=${page.counts} /><${SortChoice} />
    ${page.total === 0 ? html`<p class="hint">${filter.value || queueState.value ? "No pod matches." : "No pod waits."}</p>` : html`<${List} page=${page} />`}`;
}
