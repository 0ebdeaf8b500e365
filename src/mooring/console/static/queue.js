// The queue: pods that wait, with attempts, next retry, reason and the events that may help.

import { html, podLink, nodeLink, count, duration, secondsBetween } from "./lib.js";
import { queue, queueState, filter, problem } from "./data.js";

const STATES = [["", "all"], ["active", "active"], ["backoff", "backoff"], ["unschedulable", "unschedulable"], ["gated", "gated"], ["in flight", "inFlight"], ["binding", "binding"]];

function States({ counts }) {
  const total = Object.values(counts).reduce((sum, each) => sum + each, 0);
  return html`<div class="states" role="group" aria-label="State">${STATES.map(([state, name]) => html`<button key=${state}
    aria-pressed=${queueState.value === state} onClick=${() => { queueState.value = state; }}>
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

export function Queue() {
  const page = queue.value;
  if (!page) return !problem.value && html`<p class="loading">Loading …</p>`;
  return html`<h1>Queue</h1>
    <${States} counts=${page.counts} />
    ${page.pods.length === 0 && html`<p class="hint">${filter.value || queueState.value ? "No pod matches." : "No pod waits."}</p>`}
    ${page.pods.length === page.limit && html`<p class="hint">The first ${count(page.limit)} pods are shown. The filter finds the others.</p>`}
    ${page.pods.length > 0 && html`<table class="cards"><thead><tr><th>Pod</th><th>State</th><th class="right">Waits</th><th class="right">Attempts</th><th>Next attempt</th><th>Reason</th><th>May help</th></tr></thead>
    <tbody>${page.pods.map((row) => html`<tr key=${row.uid}>
      <td><a href=${podLink(row.pod)}>${row.pod}</a>${row.priority ? html` <span class="hint">priority ${row.priority}</span>` : ""}</td>
      <td data-label="State">${row.state}${row.node && html` on <a href=${nodeLink(row.node)}>${row.node}</a>`}</td>
      <td class="right" data-label="Waits">${duration(secondsBetween(row.since, page.now))}</td>
      <td class="right" data-label="Attempts">${row.attempts}</td>
      <td data-label="Next attempt">${retry(row, page.now)}</td>
      <td class="message" data-label="Reason">${why(row)}</td>
      <td data-label="May help">${row.awaits ? html`<details><summary>${row.awaits.length} kinds of events</summary>${row.awaits.join(", ")}</details>` : "–"}</td>
    </tr>`)}</tbody></table>`}`;
}
