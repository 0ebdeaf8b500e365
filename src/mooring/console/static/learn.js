// Learn: pause the scheduler, and follow one pod through the queue, the scheduling cycle and the binding.

import { html, Bar, podLink, nodeLink, count, plural, timeOfDay } from "./lib.js";
import { about, act, filter, learn, learned, problem } from "./data.js";

const isBound = (record) => record?.binding === "bound";
const isLost = (record) => Boolean(record?.node && record.binding && !isBound(record));

function Controls({ now }) {
  const paused = now.paused;
  const held = now.held[0];
  const next = held ? `sends the binding of ${held.pod} to ${held.node}`
    : now.next[0] ? `runs the scheduling cycle of ${now.next[0]}` : "runs the cycle of the next pod that comes";
  return html`<section class="panel"><div class="row">
      ${paused ? html`<button onClick=${() => act("resume")}>Resume</button>` : html`<button onClick=${() => act("pause")}>Pause</button>`}
      <button disabled=${!paused} onClick=${() => act("step")}>Step</button>
      <span>${paused ? html`Paused since ${timeOfDay(paused.since)}. Step ${next}.` : "The scheduler runs. Pause it between two cycles to look at each step."}</span></div>
    <p class="hint">A pause ends 5 minutes after the last step. Meanwhile no pod of this cluster gets a node. Watches and the queue go on.</p></section>`;
}

function Choice({ now }) {
  const keys = [...new Set([...now.held.map((each) => each.pod), ...now.next])].filter((key) => key.includes(filter.value));
  return html`<section class="panel"><h2>Choose a pod</h2>
    ${keys.length === 0 && html`<p class="hint">No pod is ready to be scheduled${now.waiting > 0 ? html`; ${plural(now.waiting, "pod")} in the <a href="#/queue">queue</a> ${now.waiting === 1 ? "waits" : "wait"} for an event` : ""}. Create one, for example:</p>
      <pre>kubectl create deployment web --image=nginx --replicas=3</pre>`}
    <div class="states" role="group" aria-label="Pods that are next">${keys.map((key) => html`<button key=${key} aria-pressed=${learned.value === key}
      onClick=${() => { learned.value = key; }}>${key}</button>`)}</div>
    <label>or enter its name <input type="text" placeholder="NAMESPACE/NAME" value=${learned.value}
      onChange=${(event) => { learned.value = event.target.value.trim(); }} /></label></section>`;
}

function Stage({ number, title, state, children }) {
  const sign = { done: "✓", now: "▶", failed: "✗", open: "·" }[state];
  return html`<li class=${`stage ${state}`} aria-current=${state === "now" ? "step" : undefined}>
    <h3><span aria-hidden="true">${sign}</span> ${number}. ${title} <span class="hint">${{ done: "done", now: "here", failed: "failed", open: "" }[state]}</span></h3>${children}</li>`;
}

function Rejections({ record }) {
  if (!record.rejections) return html`<p>No plugin rejected a node.</p>`;
  return html`<ul>${record.rejections.map((each) => html`<li>${plural(each.nodes, "node")}: ${each.reason ?? "rejected"} <span class="hint">${each.plugin}</span></li>`)}</ul>`;
}

function Scores({ best }) {
  const largest = Math.max(1, ...best.map((each) => each.total));
  return html`${best.map((each) => html`<div class="waterfall" key=${each.node}><a href=${nodeLink(each.node)}>${each.node}</a>
    <${Bar} percent=${(each.total / largest) * 100} label=${`${each.node}: ${each.total}`} /><b>${count(each.total)}</b></div>`)}
    <p class="hint">The highest total wins. Equal totals are decided by chance, from a seed.</p>`;
}

// A command with which another scheduler would win the race.
function Race({ held, pod }) {
  const [namespace, name] = pod.split("/");
  const binding = JSON.stringify({ apiVersion: "v1", kind: "Binding", metadata: { name }, target: { apiVersion: "v1", kind: "Node", name: "NODE" } });
  return html`<details><summary>Lose the race: let somebody else be first</summary>
    <p>The pod counts on ${held.node} already, but the API server does not know it. Bind it to another NODE now, or delete it, and then step:</p>
    <pre>echo '${binding}' | kubectl create --raw /api/v1/namespaces/${namespace}/pods/${name}/binding -f -</pre>
    <pre>kubectl delete pod -n ${namespace} ${name}</pre></details>`;
}

function Stages({ now }) {
  const { record } = now;
  const state = now.states[0];
  const held = now.held.find((each) => each.pod === now.pod);
  const waits = state && !["on its node", "binding"].includes(state.state);
  const isTried = Boolean(record) && !(waits && state.state === "active" && state.attempts !== record.attempt);
  const isPlaced = isTried && record.node;
  const reach = (is, failed = false) => (failed ? "failed" : is ? "done" : "open");
  return html`<ol class="stages">
    <${Stage} number="1" title="Queue" state=${waits && (!isTried || !isPlaced) ? "now" : "done"}>
      ${state ? html`<p>State: <b>${state.state}</b>, ${plural(state.attempts ?? record?.attempt ?? 0, "attempt")}.
        ${now.next[0] === now.pod ? " It is the next one." : now.next.includes(now.pod) ? ` ${plural(now.next.indexOf(now.pod), "pod")} before it.` : ""}
        ${state.awaits && html` Waits for ${state.awaits.join(", ")}.`}</p>` : html`<p>It is not in the queue.</p>`}
      <p class="hint">activeQ is sorted by priority, then by age. A rejected pod leaves it until an event may help.</p></${Stage}>
    <${Stage} number="2" title="Filter" state=${reach(isTried, isTried && !record.node)}>
      ${isTried && html`<p>${plural(record.feasibleNodes, "node")} passed the filters.</p><${Rejections} record=${record} />${record.message && html`<p class="message">${record.message}</p>`}`}</${Stage}>
    <${Stage} number="3" title="Score" state=${reach(isPlaced)}>${isPlaced && record.bestNodes && html`<${Scores} best=${record.bestNodes} />`}
      ${isPlaced && !record.bestNodes && html`<p>Only one node passed: it needs no scores.</p>`}</${Stage}>
    <${Stage} number="4" title="Assume" state=${held ? "now" : reach(isPlaced, isLost(record))}>
      ${isPlaced && html`<p>${isLost(record) ? html`Rolled back: the pod does not count on <a href=${nodeLink(record.node)}>${record.node}</a> any more.`
        : html`The pod counts on <a href=${nodeLink(record.node)}>${record.node}</a>: the next pod is scheduled as if it were there.`}</p>`}
      ${held && html`<${Race} held=${held} pod=${now.pod} />`}</${Stage}>
    <${Stage} number="5" title="Bind" state=${isLost(record) ? "failed" : reach(isBound(record))}>
      ${isBound(record) && html`<p>The API server has the pod on <a href=${nodeLink(record.node)}>${record.node}</a>.</p>`}
      ${isLost(record) && html`<p>The binding failed, and the assumption was undone: <span class="message">${record.binding}</span></p>`}
      ${held && html`<p>The binding is held. Step sends it.</p>`}</${Stage}></ol>`;
}

export function Learn() {
  const now = learn.value;
  if (about.value && !about.value.canPause) return html`<h1>Learn</h1><p>Only the scheduler of a cluster of <code>mooring up</code> can be paused.</p>`;
  if (!now) return !problem.value && html`<p class="loading">Loading …</p>`;
  return html`<h1>Learn</h1><${Controls} now=${now} /><${Choice} now=${now} />
    ${now.pod && html`<section class="panel"><h2><a href=${podLink(now.pod)}>${now.pod}</a></h2>
      ${now.states.length === 0 && !now.record ? html`<p class="hint">The scheduler does not know this pod.</p>` : html`<${Stages} now=${now} />`}</section>`}`;
}
