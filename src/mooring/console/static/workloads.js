// Workloads: the controllers of pods, and in which state their pods are.

import { html, signal, podLink, count, plural } from "./lib.js";
import { workloads, filter, problem } from "./data.js";

// What a pod may be, in the order of its life; `class` gives the colour, the letter is for those who do not see it.
const STATES = [["pending", "pending", "P", "s4"], ["binding", "being bound", "B", "s1"], ["placed", "on a node, not started", "N", "s3"], ["started", "started", "S", "s2"], ["terminating", "terminating", "T", "s5"]];
const KINDS = ["Deployment", "StatefulSet", "DaemonSet", "Job"];
const kind = signal("");

const total = (row) => Object.values(row.states).reduce((sum, each) => sum + each, 0);
const missing = (row) => Math.max(0, (row.wanted ?? 0) - total(row) + (row.states.terminating ?? 0));
const stateTexts = (row) => [...STATES.filter(([state]) => row.states[state]).map(([state, text]) => `${count(row.states[state])} ${text}`), ...(missing(row) ? [`${count(missing(row))} not created`] : [])];

function States({ row }) {
  const all = Math.max(1, total(row) + missing(row));
  return html`<div class="stack" role="img" aria-label=${stateTexts(row).join(", ")}>${STATES.filter(([state]) => row.states[state]).map(([state, text, letter, colour]) => html`<span key=${state}
    class=${colour} title=${`${count(row.states[state])} ${text}`} style=${{ width: `${(row.states[state] / all) * 100}%` }}>${row.states[state] / all > 0.06 && html`<b>${letter}</b>`}</span>`)}</div>`;
}

const isOther = (row) => !KINDS.includes(row.kind);

function Row({ row }) {
  const name = row.kind === "Pod" ? `${row.workload.split("/")[0]}/ (no controller)` : row.workload;
  return html`<tr><td>${name}</td><td data-label="Kind">${row.kind === "Pod" ? "–" : row.kind}</td>
    <td class="right" data-label="Pods">${count(total(row))}${row.wanted === undefined ? "" : ` of ${count(row.wanted)}`}</td>
    <td class="barcell"><${States} row=${row} /></td><td data-label="State">${stateTexts(row).join(", ") || "no pods"}</td>
    <td data-label="Pending">${row.pendingPod ? html`<a href=${podLink(row.pendingPod)}>why?</a>` : "–"}</td></tr>`;
}

export function Workloads() {
  const page = workloads.value;
  if (!page) return !problem.value && html`<p class="loading">Loading …</p>`;
  const matches = page.workloads.filter((row) => row.workload.includes(filter.value));
  const ofKind = (name) => matches.filter((row) => !name || (name === "other" ? isOther(row) : row.kind === name));
  const shown = ofKind(kind.value);
  return html`<h1>Workloads</h1>
    <div class="states" role="group" aria-label="Kind">${["", ...KINDS, "other"].map((name) => html`<button key=${name} aria-pressed=${kind.value === name}
      onClick=${() => { kind.value = name; }}>${name || "all"} <b>${count(ofKind(name).length)}</b></button>`)}</div>
    <p class="hint legend-line">${STATES.map(([state, text, letter, colour]) => html`<span key=${state}><i class=${`key ${colour}`}></i>${letter} ${text}</span>`)}</p>
    ${page.total > page.workloads.length && html`<p class="hint">The first ${count(page.workloads.length)} of ${count(page.total)} are shown.</p>`}
    ${page.podsRead < page.pods && html`<p class="hint">Counted: ${count(page.podsRead)} of ${plural(page.pods, "pod")} on nodes.</p>`}
    ${shown.length === 0 ? html`<p class="hint">${page.total ? "No workload matches." : "There are no workloads."}</p>`
      : html`<table class="cards"><thead><tr><th>Workload</th><th>Kind</th><th class="right">Pods</th><th><span class="hidden">Share</span></th><th>State</th><th>Pending</th></tr></thead>
      <tbody>${shown.map((row) => html`<${Row} key=${`${row.kind} ${row.workload}`} row=${row} />`)}</tbody></table>`}
    <p class="hint">Pods that have finished are not shown: the scheduler does not hold them.</p>`;
}
