// What if: pods of a manifest, changed requests, other nodes. The scheduler plans it and undoes it.

import { html, signal, useEffect, nodeLink, Bar, count, plural, shortReason } from "./lib.js";
import { get, getNodes, post, explain, route } from "./data.js";

const QUESTIONS = [["place", "place these pods"], ["addNodes", "place them on more nodes"], ["removeNodes", "remove nodes, and then place them"]];
const EXAMPLE = `apiVersion: apps/v1
kind: Deployment
metadata: {name: example}
spec:
  replicas: 3
  selector: {matchLabels: {app: example}}
  template:
    metadata: {labels: {app: example}}
    spec:
      containers:
      - name: main
        image: example
        resources: {requests: {cpu: 500m, memory: 256Mi}}
`;
const ROWS_SHOWN = 200;

const empty = { question: "place", manifest: "", picked: "", replicas: "", cpu: "", memory: "", tolerations: "", nodes: "", like: "", number: "" };
const form = signal(empty);
const state = signal({}); // the plan, or what is wrong, or that one is being made
const set = (name) => (event) => { form.value = { ...form.value, [name]: event.target.value }; };
const words = (text) => text.split(/[\s,]+/).filter(Boolean);

async function pick(key) {
  try {
    const { manifest } = await get("manifest", { pod: key });
    form.value = { ...form.value, manifest, picked: key };
    state.value = {};
  } catch (error) { state.value = { wrong: error.code === 404 ? `The scheduler has no pod ${key}.` : explain(error) }; }
}

async function requestOf(asked) {
  const requests = Object.fromEntries(["cpu", "memory"].filter((name) => asked[name]).map((name) => [name, asked[name]]));
  const found = asked.manifest.trim() ? await post("pods", { manifest: asked.manifest, replicas: asked.replicas === "" ? null : Number(asked.replicas), requests, tolerations: words(asked.tolerations) }) : { pods: [], copies: [], notes: [] };
  const body = { question: asked.question, pods: found.pods, copies: found.copies };
  if (asked.question === "removeNodes") body.nodes = words(asked.nodes);
  if (asked.question === "addNodes") body.nodeTypes = words(asked.like).map((like) => ({ like, ...(asked.number && { count: Number(asked.number) }) }));
  return { body, manifest: found.manifest, notes: found.notes };
}

async function plan() {
  const asked = form.value;
  state.value = { isPlanning: true };
  try {
    const request = await requestOf(asked);
    const [before, result] = [await getNodes("nodes"), await post("plan", request.body)];
    state.value = { asked, request, result, before: byNode(before), command: command(asked, request) };
  } catch (error) {
    state.value = { wrong: error.code === 422 ? error.message : explain(error) };
  }
}

// The requested shares of each node as they are now.
function byNode({ names, columns: { cpu, memory } }) {
  return new Map(names.map((name, row) => [name, { cpu: cpu[row], memory: memory[row] }]));
}

const quoted = (word) => (/^[\w./:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// The same question on the command line. The manifest has all changes already.
function command(asked, request) {
  const parts = ["mooring plan"];
  if (request.manifest) parts.push("-");
  if (asked.question === "removeNodes") parts.push(...words(asked.nodes).map((name) => `--remove-node ${quoted(name)}`));
  if (asked.question === "addNodes") parts.push(...words(asked.like).map((name) => `--add-node-like ${quoted(name)}`), ...(asked.number ? [`--count ${Number(asked.number)}`] : []));
  if (!request.manifest) return parts.join(" ");
  let end = "MANIFEST";
  while (request.manifest.split("\n").includes(end)) end += "_";
  return `${parts.join(" ")} <<'${end}'\n${request.manifest.trimEnd()}\n${end}`;
}

function Field({ text, name, placeholder, type = "text", hint = "" }) {
  return html`<label class="field"><span>${text}${hint && html` <span class="hint">${hint}</span>`}</span><input type=${type} min="0" value=${form.value[name]} placeholder=${placeholder} onInput=${set(name)} /></label>`;
}

function Form() {
  const asked = form.value;
  return html`<form class="panel" onSubmit=${(event) => { event.preventDefault(); plan(); }}>
    <fieldset><legend>What if I …</legend>${QUESTIONS.map(([name, text]) => html`<label key=${name}><input type="radio" name="question" value=${name} checked=${asked.question === name} onChange=${set("question")} /> ${text}</label>`)}</fieldset>
    ${asked.question === "removeNodes" && html`<${Field} text="Nodes to remove" name="nodes" placeholder="node-1 node-2" />`}
    ${asked.question === "addNodes" && html`<div class="fields"><${Field} text="Nodes like" name="like" placeholder="node-1" /><${Field} text="How many" name="number" type="number" placeholder="as few as possible" /></div>`}
      <div class="pick"><${Field} text="A pod of the cluster" name="picked" placeholder="NAMESPACE/NAME" />
        <button type="button" onClick=${() => pick(asked.picked)} disabled=${!/^[^/]+\/[^/]+$/.test(asked.picked)}>Take its manifest</button>
        <button type="button" onClick=${() => { form.value = { ...form.value, manifest: EXAMPLE }; }}>Example</button></div>
      <label class="field"><span>Manifest <span class="hint">Pod, Deployment, ReplicaSet, StatefulSet or Job; empty: ${asked.question === "removeNodes" ? "only the pods of the removed nodes" : "the pending pods of the cluster"}</span></span>
        <textarea rows="12" spellcheck="false" value=${asked.manifest} onInput=${set("manifest")}></textarea></label>
      <div class="fields"><${Field} text="Replicas" name="replicas" type="number" placeholder="as written" />
        <${Field} text="Request cpu" name="cpu" placeholder="as written" /><${Field} text="Request memory" name="memory" placeholder="as written" />
        <${Field} text="Tolerate" name="tolerations" placeholder="gpu=yes, or *" /></div>
    <button class="primary" disabled=${state.value.isPlanning}>${state.value.isPlanning ? "Planning …" : "Plan"}</button>
    <span class="hint"> Nothing is changed.</span></form>`;
}

// How many pods each node gains and loses.
function differences({ placements }) {
  const found = new Map();
  const change = (node, field) => { if (node) { const each = found.get(node) ?? { gains: 0, loses: 0 }; each[field] += 1; found.set(node, each); } };
  for (const each of placements) {
    change(each.node, "gains");
    change(each.movedFrom, "loses");
    each.victims.forEach(() => change(each.node, "loses"));
  }
  return [...found].sort(([, a], [, b]) => b.gains + b.loses - a.gains - a.loses);
}

function Pods({ result }) {
  const rows = [...result.pending.map((each) => ({ ...each, node: "" })), ...result.placements];
  return html`<section class="panel"><h2>Pods</h2><table class="cards"><thead><tr><th>Pod</th><th>Now</th><th>Plan</th></tr></thead>
    <tbody>${rows.slice(0, ROWS_SHOWN).map((each) => html`<tr key=${each.pod}><td>${each.pod}</td><td data-label="Now">${each.movedFrom ? html`<a href=${nodeLink(each.movedFrom)}>${each.movedFrom}</a>` : "no node"}</td>
      <td data-label="Plan">${each.node ? html`✓ ${each.node}${each.victims.length > 0 && html` <span class="message">preempts ${each.victims.map((victim) => victim.pod).join(", ")}</span>`}` : html`✗ pending <span class="message" title=${each.message}>${shortReason(each.message)}</span>`}</td></tr>`)}</tbody></table>
    ${rows.length > ROWS_SHOWN && html`<p class="hint">The first ${count(ROWS_SHOWN)} of ${count(rows.length)} are shown.</p>`}</section>`;
}

function Nodes({ result, before }) {
  const rows = differences(result);
  if (rows.length === 0) return null;
  return html`<section class="panel"><h2>Nodes</h2><table class="cards"><thead><tr><th>Node</th><th>cpu now</th><th>memory now</th><th class="right">Pods in the plan</th></tr></thead>
    <tbody>${rows.slice(0, ROWS_SHOWN).map(([name, { gains, loses }]) => { const now = before.get(name); return html`<tr key=${name}><td>${now ? html`<a href=${nodeLink(name)}>${name}</a>` : html`${name} <span class="hint">new</span>`}</td>
      <td class="barcell" data-label="cpu now">${now && html`<${Bar} percent=${now.cpu} label=${`${now.cpu} % of cpu requested`} />`}${now ? `${now.cpu} %` : "–"}</td>
      <td class="barcell" data-label="memory now">${now && html`<${Bar} percent=${now.memory} label=${`${now.memory} % of memory requested`} />`}${now ? `${now.memory} %` : "–"}</td>
      <td class="right" data-label="Pods in the plan">${gains > 0 && `+${gains}`} ${loses > 0 && `−${loses}`}</td></tr>`; })}</tbody></table>
    ${rows.length > ROWS_SHOWN && html`<p class="hint">The first ${count(ROWS_SHOWN)} of ${count(rows.length)} are shown.</p>`}</section>`;
}

function Drained({ drained }) {
  return html`<section class="panel"><h2>Drain in this order</h2><ol>${drained.map((each) => html`<li key=${each.node}><b>${each.node}</b> ${each.isSafe ? "✓ safe" : "✗ not safe"}, ${plural(each.pods, "pod")} move, ${each.ends.length} of DaemonSets end
    ${each.lost.length > 0 && html`<div class="message">lost, because no controller creates them again: ${each.lost.join(", ")}</div>`}${each.blocked.map((text) => html`<div class="message">${text}</div>`)}</li>`)}</ol></section>`;
}

async function copy(event, text) {
  const button = event.currentTarget;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { getSelection().selectAllChildren(button.closest("section").querySelector("pre")); }
}

function Result({ shown }) {
  const { result, before, request } = shown;
  const added = result.nodesToAdd.map((each) => `${plural(each.count, "node")} like ${each.type}`).join(", ");
  return html`<section class="panel result" role="status"><h2>Plan</h2><p><b>${count(result.placements.length)} placed</b>, <b>${count(result.pending.length)} pending</b> ${added && html`with <b>${added}</b>`} <span class="hint">on ${plural(result.nodeCount, "node")}</span></p>
      ${[...request.notes, ...result.notes].map((text) => html`<p class="hint">${text}</p>`)}</section>
    ${result.drained.length > 0 && html`<${Drained} drained=${result.drained} />`}
    ${result.placements.length + result.pending.length > 0 && html`<${Pods} result=${result} />`}<${Nodes} result=${result} before=${before} />
    <section class="panel"><div class="row"><h2>On the command line</h2><button onClick=${(event) => copy(event, shown.command)}>Copy</button></div><pre tabindex="0">${shown.command}</pre></section>`;
}

export function WhatIf() {
  const [kind, ...rest] = route.value.key.split("/");
  useEffect(() => {
    if (kind === "node") { form.value = { ...empty, question: "removeNodes", nodes: rest.join("/") }; state.value = {}; }
    if (kind === "pod") { form.value = { ...empty, picked: rest.join("/") }; pick(rest.join("/")); }
  }, [route.value.key]);
  const shown = state.value;
  return html`<h1>What if</h1><div class="whatif"><${Form} /><div>
    ${shown.wrong && html`<p class="problem" role="alert">${shown.wrong}</p>`}
    ${shown.result ? html`<${Result} shown=${shown} />` : !shown.wrong && html`<p class="hint">The plan appears here. It is made by the running scheduler on the cluster as it is now.</p>`}</div></div>`;
}
