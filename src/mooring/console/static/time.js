// Time: the map and the queue as they were, and what ended the waiting of a pod.

import { html, signal, effect, useEffect, podLink, nodeLink, count, plural, duration, timeOfDay, secondsBetween, shortReason } from "./lib.js";
import { explain, filter, get, getNodes, past, problem } from "./data.js";
import { Legend, NodeMap } from "./map.js";

const RENEWED_MS = 5000; // how often the present is shown anew

const chosen = signal(null); // seconds since 1970; null: now
const shown = signal(null);
const present = signal(0); // the latest time of the server, in seconds since 1970
let isLoading = false;
let isAskedAgain = false;

// One request at a time. A slider that is dragged asks for its latest place only.
async function load() {
  if (isLoading) { isAskedAgain = true; return; }
  isLoading = true;
  try {
    const time = chosen.value === null ? {} : { time: chosen.value };
    const answer = await get("past/at", time);
    const nodes = answer.sampled ? await getNodes("past/nodes", time, shown.value?.nodes) : null;
    if (!("time" in time)) present.value = Date.parse(answer.time) / 1000;
    shown.value = { ...answer, nodes };
    problem.value = "";
  } catch (error) {
    problem.value = explain(error);
  }
  isLoading = false;
  if (isAskedAgain) { isAskedAgain = false; load(); }
}

// The first and the last time that can be chosen. It does not subscribe: a chosen time stays while new samples come.
function ends() {
  const { samples, attemptsFrom } = past.peek();
  const times = [...samples.map(([time]) => time), ...(attemptsFrom ? [attemptsFrom] : [])];
  if (times.length === 0) return null;
  return [Math.floor(Math.min(...times)), Math.ceil(Math.max(...times, present.peek()))];
}

const place = () => chosen.value ?? ends()?.[1] ?? 0;

function Chart({ from, to }) {
  const { samples } = past.value;
  const largest = Math.max(1, ...samples.map(([, pending]) => pending));
  const x = (time) => ((time - from) / Math.max(1, to - from)) * 100;
  const points = samples.map(([time, pending]) => `${x(time)},${38 - (pending / largest) * 36}`);
  const last = samples.at(-1);
  if (last) points.push(`100,${38 - (last[1] / largest) * 36}`);
  return html`<svg class="past" viewBox="0 0 100 40" preserveAspectRatio="none" role="img"
    aria-label=${`Pending pods over time, at most ${count(largest)}`}><polyline points=${points.join(" ")} /></svg>`;
}

const outcome = (each) => each.node
  ? html`✓ <a href=${nodeLink(each.node)}>${each.node}</a>${each.binding && each.binding !== "bound" ? html` <span class="message">not bound: ${each.binding}</span>` : ""}`
  : html`✗ <span class="message" title=${each.reason}>${shortReason(each.reason)}</span>`;

function Waiting({ now, rows }) {
  return html`<section class="panel"><h2>Pods that waited: ${count(now.waitingCount)}</h2>
    ${rows.length === 0 && html`<p class="hint">${filter.value ? "No pod matches." : "The latest attempt of every pod until then found a node."}</p>`}
    ${rows.length > 0 && html`<table class="cards"><thead><tr><th>Pod</th><th>Unschedulable since</th><th class="right">Attempts</th><th>Reason</th><th>Tried again</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.uid}><td><a href=${podLink(row.pod)}>${row.pod}</a></td>
      <td data-label="Unschedulable since"><time datetime=${row.since}>${timeOfDay(row.since)}</time>, for ${duration(secondsBetween(row.since, now.time))}</td>
      <td class="right" data-label="Attempts">${row.attempts}</td><td class="message" data-label="Reason" title=${row.reason}>${shortReason(row.reason)}</td>
      <td data-label="Tried again">${row.next
        ? html`<time datetime=${row.next.time}>${timeOfDay(row.next.time)}</time> after ${row.next.requeuedBy ? html`<b>${row.next.requeuedBy}</b>` : "its backoff"}: ${outcome(row.next)}`
        : "not yet, or deleted"}</td></tr>`)}</tbody></table>`}</section>`;
}

function Attempts({ rows }) {
  return html`<section class="panel"><h2>Attempts until then</h2>
    ${rows.length === 0 && html`<p class="hint">${filter.value ? "No pod matches." : "There was none, or its record was dropped."}</p>`}
    <ul class="rejections">${rows.map((each) => html`<li key=${each.pod + each.attempt + each.time}><time datetime=${each.time}>${timeOfDay(each.time)}</time>
      ${" "}<a href=${podLink(each.pod)}>${each.pod}</a> attempt ${each.attempt}${each.requeuedBy && html` after <b>${each.requeuedBy}</b>`}: ${outcome(each)}</li>`)}</ul></section>`;
}

export function Time() {
  const range = past.value && ends();
  useEffect(() => effect(() => { if ((chosen.value === null ? past.value : past.peek()) && ends()) load(); }), []);
  useEffect(() => {
    const timer = setInterval(() => { if (chosen.value === null && !document.hidden && past.value && ends()) load(); }, RENEWED_MS);
    return () => clearInterval(timer);
  }, []);
  if (!past.value) return !problem.value && html`<p class="loading">Loading …</p>`;
  if (!range) return html`<h1>Time</h1><p class="hint">Nothing is recorded yet.</p>`;
  const [from, to] = range;
  const now = shown.value;
  const isShown = (each) => each.pod.includes(filter.value);
  const text = now ? new Date(now.time).toLocaleString("en-GB") : "";
  return html`<h1>Time</h1>
    <section class="panel"><div class="row"><h2>${chosen.value === null ? "Now" : text}</h2>
      <span class="hint">${plural(past.value.samples.length, "sample")} in ${duration(to - from)}; the line shows pending pods</span>
      <button disabled=${chosen.value === null} onClick=${() => { chosen.value = null; }}>Now</button></div>
      <${Chart} from=${from} to=${to} />
      <input class="slider" type="range" aria-label="Time" aria-valuetext=${text} min=${from} max=${to} step="1" value=${place()}
        onInput=${(event) => { chosen.value = Number(event.target.value); }} />
    </section>
    ${now && html`<section class="panel"><div class="row"><h2>Nodes</h2><${Legend} /></div>
      ${now.nodes && now.nodes.names.length === 0 && html`<p class="hint">The cluster had no nodes.</p>`}
      ${now.nodes && now.nodes.names.length > 0 && html`<${NodeMap} nodes=${now.nodes} metric="requested" order="name" text=${filter.value} />`}
      ${now.nodes ? html`<p class="hint">Exact at ${timeOfDay(now.sampled)}, when it was sampled: ${plural(now.bound, "pod")} bound, ${now.counts.unschedulable} unschedulable, ${now.counts.gated} gated. Blocks show the largest requested share.</p>`
        : html`<p class="hint">There is no sample from before the start of this scheduler.</p>`}</section>
    <${Waiting} now=${now} rows=${now.waiting.filter(isShown)} />
    <${Attempts} rows=${now.attempts.filter(isShown)} />
    <p class="hint">Pods that waited are those whose latest attempt until then found no node. When a waiting pod was deleted is not recorded,
      so that it may be shown too long; pods that were never tried, such as gated ones, are only counted.</p>`}`;
}
