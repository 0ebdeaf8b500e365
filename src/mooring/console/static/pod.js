// A pod: its timeline, what is in its way now, and each attempt with scores, rejections and what changed since the one before.

import { html, signal, useEffect, nodeLink, podLink, count, plural, duration, secondsBetween, timeOfDay } from "./lib.js";
import { pod, problem, get, post, explain, route } from "./data.js";

const PATTERNS = 8;
const EVENTS_SHOWN = 14;
const explained = signal(null); // of one pod: its life in the API, nearest nodes, candidates
const fixes = signal(null); // of one pod: changes that make it fit, or a text

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
    <p class="hint legend-line">${plugins.map((plugin) => html`<span key=${plugin}><i class=${`key ${colour(plugin)}`}></i>${plugin}</span>`)}</p>
    <details><summary>Scores by plugin</summary><div class="scroll"><table><thead><tr><th>Plugin</th>${best.map((node) => html`<th class="right">${node.node}</th>`)}</tr></thead>
      <tbody>${plugins.map((plugin) => html`<tr><td><i class=${`key ${colour(plugin)}`}></i>${plugin}</td>
        ${best.map((node) => html`<td class="right">${count(node.scores[plugin] ?? 0)}</td>`)}</tr>`)}
        <tr><td>total</td>${best.map((node) => html`<td class="right"><b>${count(node.total)}</b></td>`)}</tr></tbody></table></div></details></div>`;
}

const label = (each) => `${each.reason ?? "rejected"} (${each.plugin})`;
const byLabel = (attempt) => new Map((attempt?.rejections ?? []).map((each) => [label(each), each.nodes]));

// What differs from the attempt before: feasible nodes, and reasons that are new, gone, or of another number of nodes.
function changes(attempt, before) {
  if (!before) return [];
  const now = byLabel(attempt);
  const then = byLabel(before);
  const reasons = [...new Set([...now.keys(), ...then.keys()])]
    .filter((reason) => now.get(reason) !== then.get(reason))
    .map((reason) => `${reason}: ${plural(then.get(reason) ?? 0, "node")} before, ${count(now.get(reason) ?? 0)} now`);
  if (attempt.feasibleNodes === before.feasibleNodes) return reasons;
  return [`feasible: ${plural(before.feasibleNodes, "node")} before, ${count(attempt.feasibleNodes)} now`, ...reasons];
}

function Summary({ attempt, total }) {
  return html`<b>Attempt ${attempt.attempt}</b> <time datetime=${attempt.time}>${timeOfDay(attempt.time)}</time>
    <span class="result">${attempt.node ? `✓ ${attempt.node}` : `✗ ${attempt.result}`}</span>
    <span class="hint">${plural(attempt.feasibleNodes, "feasible node")} of ${count(total)}, ${count(attempt.tookMicroseconds)} µs${attempt.binding ? `, ${attempt.binding}` : ""}${attempt.requeuedBy ? `, after ${attempt.requeuedBy}` : ""}</span>`;
}

// The newest attempt is open; of an older one a line is shown until it is asked for.
function Attempt({ attempt, before, total, isNewest }) {
  const changed = changes(attempt, before);
  return html`<li class=${attempt.node ? "placed" : "rejected"}><details open=${isNewest}><summary class="row"><${Summary} attempt=${attempt} total=${total} /></summary>
    ${attempt.node && html`<p>Node <a href=${nodeLink(attempt.node)}>${attempt.node}</a></p>`}
    ${attempt.message && html`<p class="message">${attempt.message}</p>`}
    ${attempt.error && html`<p class="message">${attempt.error}</p>`}
    ${attempt.preemption && html`<p>Preempts on <a href=${nodeLink(attempt.preemption.node)}>${attempt.preemption.node}</a>: ${attempt.preemption.victims.map((victim, place) => html`${place > 0 && ", "}<a href=${podLink(victim)}>${victim}</a>`)}</p>`}
    ${before && html`<h3>Changed since the attempt before</h3>${changed.length > 0 ? html`<ul>${changed.map((text) => html`<li>${text}</li>`)}</ul>` : html`<p class="hint">Nothing that the scheduler counts.</p>`}`}
    ${attempt.rejections && html`<table class="rejected-by"><thead><tr><th>Plugin</th><th>Reason</th><th class="right">Nodes</th></tr></thead>
      <tbody>${attempt.rejections.map((each) => html`<tr><td>${each.plugin}</td><td>${each.reason ?? "–"}</td><td class="right">${count(each.nodes)}</td></tr>`)}</tbody></table>`}
    ${attempt.bestNodes && html`<${Scores} best=${attempt.bestNodes} />`}</details></li>`;
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

// The events of a pod's life, oldest first. Times of the API have whole seconds, so the order is that of a pod's life.
function events(page, life) {
  const attempts = [...page.decisions].reverse();
  const isBound = attempts.at(-1)?.binding === "bound" || life.scheduled;
  return [
    life.created && { time: life.created, text: "created" },
    page.queued[0] && { time: page.queued[0], text: "queued" },
    ...attempts.map((each) => ({ time: each.time, text: each.node ? html`attempt ${each.attempt} ✓ <a href=${nodeLink(each.node)}>${each.node}</a>` : `attempt ${each.attempt} ✗ ${each.result}`, kind: each.node ? "placed" : "rejected" })),
    isBound && life.scheduled && { time: life.scheduled, text: "bound", kind: "placed" },
    life.started && { time: life.started, text: "started", kind: "placed" },
    life.ready && { time: life.ready, text: "ready", kind: "placed" },
    life.deleted && { time: life.deleted, text: "deleted", kind: "rejected" },
  ].filter(Boolean);
}

function Timeline({ page }) {
  const all = events(page, explained.value?.life ?? {});
  if (all.length === 0) return null;
  const left = all.length > EVENTS_SHOWN ? all.length - EVENTS_SHOWN : 0;
  const shown = left ? [...all.slice(0, 4), null, ...all.slice(4 + left)] : all;
  return html`<section class="panel"><h2>Timeline</h2><ol class="life">${shown.map((each, place) => html`<li key=${place} class=${each?.kind ?? ""}>
    ${each ? html`<span>${each.text}</span> <time datetime=${each.time}>${timeOfDay(each.time)}</time>
      ${place > 0 && shown[place - 1] && secondsBetween(shown[place - 1].time, each.time) >= 1 && html` <span class="hint">after ${duration(secondsBetween(shown[place - 1].time, each.time))}</span>`}`
      : html`<span class="hint">${plural(left, "more attempt")}</span>`}</li>`)}</ol></section>`;
}

function Nearest({ found }) {
  if (!found.nearestNodes) return null;
  return html`<section class="panel"><h2>Nearest nodes <span class="hint">now</span></h2>
    ${found.nodesWithoutObstacles > 0 && html`<p>${plural(found.nodesWithoutObstacles, "node")} would take the pod now.</p>`}
    ${found.obstaclesEverywhere.map((each) => html`<p class="message">everywhere: ${each.text} <span class="hint">${each.plugin}</span></p>`)}
    <table class="cards"><thead><tr><th>Node</th><th>Missing</th></tr></thead><tbody>${found.nearestNodes.map((each) => html`<tr key=${each.node}><td><a href=${nodeLink(each.node)}>${each.node}</a></td>
      <td>${each.obstacles.map((obstacle) => html`<div>${obstacle.text} <span class="hint">${obstacle.plugin}</span></div>`)}</td></tr>`)}</tbody></table></section>`;
}

function Candidates({ found }) {
  if (!found.candidates) return null;
  return html`<section class="panel"><h2>Preemption candidates <span class="hint">now</span></h2>
    ${found.candidates.length === 0 ? html`<p class="hint">Evicting pods of lower priority makes room on no node.</p>` : html`<table class="cards"><thead><tr><th>Node</th><th>Victims</th><th class="right">Budgets violated</th></tr></thead>
    <tbody>${found.candidates.map((each) => html`<tr key=${each.node}><td><a href=${nodeLink(each.node)}>${each.node}</a></td>
      <td data-label="Victims">${each.victims.map((victim) => html`<div><a href=${podLink(victim.pod)}>${victim.pod}</a> <span class="hint">priority ${victim.priority}</span></div>`)}</td>
      <td class="right" data-label="Budgets violated">${each.budgetsViolated}</td></tr>`)}</tbody></table>`}</section>`;
}

async function readFixes(key) {
  fixes.value = "Planning …";
  try {
    const answer = await post("plan", { question: "fix", podNames: [key] });
    fixes.value = answer.fixes.length ? answer.fixes : answer.placements.length ? `It fits now, on ${answer.placements[0].node}.` : "No small change makes it fit.";
  } catch (error) { fixes.value = explain(error); }
}

function Fixes({ page }) {
  const found = fixes.value;
  return html`<section class="panel"><div class="row"><h2>What makes it fit?</h2><button onClick=${() => readFixes(page.pod)}>Find the smallest changes</button>
    <a href=${`#/whatif/pod/${page.pod.split("/").map(encodeURIComponent).join("/")}`}>Try others in What if</a></div>
    ${typeof found === "string" && html`<p>${found}</p>`}
    ${Array.isArray(found) && html`<ol>${found.map((each) => html`<li>${each.changes.join(", ")} <span class="hint">→ ${each.node}</span></li>`)}</ol>`}</section>`;
}

// Asked once per attempt and state, because the scheduler runs all filters on all nodes for it.
function useExplanation(page) {
  const key = JSON.stringify([page.pod, page.decisions.length, page.decisions[0]?.time, page.decisions[0]?.binding, page.states.map((each) => [each.state, each.started])]);
  useEffect(() => {
    get("explain", { pod: page.pod }).then((answer) => { if (answer.pod === route.value.key) explained.value = answer; }, () => {});
  }, [key]);
}

function Shown({ page }) {
  useExplanation(page);
  const found = explained.value?.pod === page.pod ? explained.value : {};
  const attempts = page.decisions;
  return html`${page.states.map((state) => html`<${State} state=${state} now=${page.now} />`)}
    <${Timeline} page=${page} />
    ${found.nearestNodes && html`<${Fixes} page=${page} /><div class="halves"><${Nearest} found=${found} /><${Candidates} found=${found} /></div>`}
    <h2>Attempts</h2>
    ${attempts.length === 0 && html`<p class="hint">The scheduler has no record of an attempt: there was none yet, or the record was dropped.</p>`}
    <ol class="timeline">${attempts.map((attempt, place) => html`<${Attempt} key=${attempt.uid + attempt.attempt} attempt=${attempt} before=${attempts[place + 1]} total=${page.nodes} isNewest=${place === 0} />`)}</ol>`;
}

export function Pod() {
  const page = pod.value;
  useEffect(() => { explained.value = null; fixes.value = null; }, [route.value.key]);
  return html`<h1><span class="hint">Pod</span> ${route.value.key}</h1>
    ${page ? html`<${Shown} page=${page} />` : !problem.value && html`<p class="loading">Loading …</p>`}`;
}
