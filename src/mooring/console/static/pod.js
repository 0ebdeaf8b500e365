// A pod: its state, and each attempt with scores, rejections and what changed since the attempt before.

import { html, nodeLink, count, plural, duration, secondsBetween, timeOfDay } from "./lib.js";
import { pod, problem } from "./data.js";

const PATTERNS = 8;

function Scores({ best }) {
  const plugins = [...new Set(best.flatMap((node) => Object.keys(node.scores)))]
    .filter((plugin) => best.some((node) => node.scores[plugin] !== 0));
  const largest = Math.max(1, ...best.map((node) => node.total));
  const colour = (plugin) => `s${plugins.indexOf(plugin) % PATTERNS}`;
  return html`<div class="scores"><h3>Best nodes</h3>${best.map((node) => html`<div class="waterfall" key=${node.node}>
      <a href=${nodeLink(node.node)}>${node.node}</a>
      <div class="stack" role="img" aria-label=${`${node.node}: ${node.total}`}>${plugins.map((plugin) => html`<span key=${plugin}
        class=${colour(plugin)} title=${`${plugin}: ${node.scores[plugin] ?? 0}`} style=${{ width: `${((node.scores[plugin] ?? 0) / largest) * 100}%` }}></span>`)}</div>
      <b>${count(node.total)}</b></div>`)}
    <details><summary>Scores by plugin</summary><div class="scroll"><table><thead><tr><th>Plugin</th>${best.map((node) => html`<th class="right">${node.node}</th>`)}</tr></thead>
      <tbody>${plugins.map((plugin) => html`<tr><td><i class=${`key ${colour(plugin)}`}></i>${plugin}</td>
        ${best.map((node) => html`<td class="right">${count(node.scores[plugin] ?? 0)}</td>`)}</tr>`)}
        <tr><td>total</td>${best.map((node) => html`<td class="right"><b>${count(node.total)}</b></td>`)}</tr></tbody></table></div></details></div>`;
}

const label = (each) => `${each.reason ?? "rejected"} (${each.plugin})`;
const byLabel = (attempt) => new Map((attempt?.rejections ?? []).map((each) => [label(each), each.nodes]));

// What differs from the attempt before: reasons that are new, gone, or of another number of nodes.
function changes(attempt, before) {
  if (!before) return [];
  const now = byLabel(attempt);
  const then = byLabel(before);
  return [...new Set([...now.keys(), ...then.keys()])]
    .filter((reason) => now.get(reason) !== then.get(reason))
    .map((reason) => `${reason}: ${plural(then.get(reason) ?? 0, "node")} before, ${count(now.get(reason) ?? 0)} now`);
}

function Attempt({ attempt, before, total }) {
  const changed = changes(attempt, before);
  const isPlaced = Boolean(attempt.node);
  return html`<li class=${isPlaced ? "placed" : "rejected"}>
    <div class="row"><b>Attempt ${attempt.attempt}</b> <time datetime=${attempt.time}>${timeOfDay(attempt.time)}</time>
      <span class="result">${isPlaced ? html`✓ <a href=${nodeLink(attempt.node)}>${attempt.node}</a>` : `✗ ${attempt.result}`}</span>
      <span class="hint">${plural(attempt.feasibleNodes, "feasible node")} of ${count(total)}, ${count(attempt.tookMicroseconds)} µs${attempt.binding ? `, ${attempt.binding}` : ""}</span></div>
    ${attempt.requeuedBy && html`<p>Tried again after <b>${attempt.requeuedBy}</b>.</p>`}
    ${attempt.message && html`<p class="message">${attempt.message}</p>`}
    ${attempt.error && html`<p class="message">${attempt.error}</p>`}
    ${attempt.preemption && html`<p>Preempts on <a href=${nodeLink(attempt.preemption.node)}>${attempt.preemption.node}</a>: ${attempt.preemption.victims.join(", ")}</p>`}
    ${changed.length > 0 && html`<div><h3>Changed since the attempt before</h3><ul>${changed.map((text) => html`<li>${text}</li>`)}</ul></div>`}
    ${attempt.rejections && html`<table class="rejected-by"><thead><tr><th>Plugin</th><th>Reason</th><th class="right">Nodes</th></tr></thead>
      <tbody>${attempt.rejections.map((each) => html`<tr><td>${each.plugin}</td><td>${each.reason ?? "–"}</td><td class="right">${count(each.nodes)}</td></tr>`)}</tbody></table>`}
    ${attempt.bestNodes && html`<${Scores} best=${attempt.bestNodes} />`}</li>`;
}

function State({ state, now }) {
  return html`<p class="state"><b>${state.state}</b>${state.node && html` <a href=${nodeLink(state.node)}>${state.node}</a>`}
    ${state.since && html` for ${duration(secondsBetween(state.since, now))}`}${state.cause && state.event && html`, after ${state.event}`}
    ${state.backsOffUntil && html`, next attempt in ${duration(secondsBetween(now, state.backsOffUntil))}`}
    ${state.retriedAtTheLatest && html`, next attempt in ${duration(secondsBetween(now, state.retriedAtTheLatest))} at the latest`}
    ${state.gatedBy && html`, gated by ${state.gatedBy}`}
    ${state.nominatedNode && html`, nominated to <a href=${nodeLink(state.nominatedNode)}>${state.nominatedNode}</a>`}</p>
    ${state.awaits && html`<p class="hint">May help: ${state.awaits.join(", ")}</p>`}`;
}

export function Pod() {
  const page = pod.value;
  if (!page) return !problem.value && html`<p class="loading">Loading …</p>`;
  const attempts = page.decisions;
  return html`<h1><span class="hint">Pod</span> ${page.pod}</h1>
    ${page.states.map((state) => html`<${State} state=${state} now=${page.now} />`)}
    <h2>Attempts</h2>
    ${attempts.length === 0 && html`<p class="hint">The scheduler has no record of an attempt: there was none yet, or the record was dropped.</p>`}
    <ol class="timeline">${attempts.map((attempt, place) => html`<${Attempt} key=${attempt.uid + attempt.attempt} attempt=${attempt} before=${attempts[place + 1]} total=${page.nodes} />`)}</ol>`;
}
