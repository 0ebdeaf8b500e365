// A node: requested and free amounts, its pods as bars, what still fits, taints, volumes, devices and labels.

import { html, signal, useEffect, Bar, amount, podLink, count, plural } from "./lib.js";
import { node, filter, problem, get, route } from "./data.js";

const fits = signal(null); // of one node: how many more pods of each type

async function readFits(name) {
  try {
    const answer = await get("fits", { node: name });
    if (route.value.key === name) fits.value = answer;
  } catch { /* the page says that the node is gone */ }
}

function Resources({ resources }) {
  return html`<section class="panel"><h2>Resources</h2><table><thead><tr><th>Resource</th><th><span class="hidden">Share</span></th><th class="right">Requested</th><th class="right">Free</th><th class="right wide">Allocatable</th></tr></thead>
    <tbody>${resources.map(({ name, allocatable, requested }) => {
      const percent = allocatable ? (requested / allocatable) * 100 : requested ? 101 : 0;
      return html`<tr><td>${name}</td><td class="barcell"><${Bar} percent=${percent} label=${`${percent.toFixed(0)} % requested`} /></td>
        <td class="right">${amount(name, requested)} <span class="hint">${percent.toFixed(0)} %</span></td>
        <td class="right">${amount(name, allocatable - requested)}</td><td class="right wide">${amount(name, allocatable)}</td></tr>`;
    })}</tbody></table></section>`;
}

const FIELDS = { cpu: "cpuMilli", memory: "memory" };

// One bar for each resource, with a part for each pod.
function Shares({ page }) {
  return html`<div>${Object.entries(FIELDS).map(([resource, field]) => {
    const whole = page.resources.find((each) => each.name === resource)?.allocatable ?? 0;
    const pods = page.pods.filter((each) => each[field] > 0);
    return html`<div class="waterfall" key=${resource}><span>${resource}</span>
      <div class="stack" role="img" aria-label=${`${resource} of ${plural(pods.length, "pod")}`}>${whole > 0 && pods.map((each, place) => html`<span key=${each.pod} class=${`s${place % 8}`}
        title=${`${each.pod}: ${amount(resource, each[field])}`} style=${{ width: `${(each[field] / whole) * 100}%` }}></span>`)}</div>
      <b>${amount(resource, pods.reduce((sum, each) => sum + each[field], 0))}</b></div>`;
  })}</div>`;
}

function Pods({ page }) {
  const shown = page.pods.filter((each) => each.pod.includes(filter.value));
  const whole = Object.fromEntries(page.resources.map((each) => [each.name, each.allocatable]));
  const share = (each, resource) => (whole[resource] ? (each[FIELDS[resource]] / whole[resource]) * 100 : 0);
  return html`<section class="panel"><h2>Pods <span class="hint">${count(page.podCount)}</span></h2>
    ${page.pods.length < page.podCount && html`<p class="hint">The first ${count(page.pods.length)} are shown.</p>`}
    ${page.podCount > 0 && html`<${Shares} page=${page} />`}
    ${shown.length === 0 ? html`<p class="hint">${page.podCount ? "No pod matches." : "No pods."}</p>` : html`<table><thead><tr><th>Pod</th><th class="wide"><span class="hidden">Share</span></th><th class="right">cpu</th><th class="wide"><span class="hidden">Share</span></th><th class="right">memory</th><th class="right wide">Priority</th></tr></thead>
    <tbody>${shown.map((each) => html`<tr key=${each.pod}><td><a href=${podLink(each.pod)}>${each.pod}</a>
      ${each.terminating && html` <span class="hint">terminating</span>`}${each.assumed && html` <span class="hint">being bound</span>`}</td>
      <td class="barcell wide"><${Bar} percent=${share(each, "cpu")} label=${`${share(each, "cpu").toFixed(0)} % of the node's cpu`} /></td><td class="right">${amount("cpu", each.cpuMilli)}</td>
      <td class="barcell wide"><${Bar} percent=${share(each, "memory")} label=${`${share(each, "memory").toFixed(0)} % of the node's memory`} /></td><td class="right">${amount("memory", each.memory)}</td>
      <td class="right wide">${count(each.priority)}</td></tr>`)}</tbody></table>`}</section>`;
}

function Fits({ name }) {
  useEffect(() => { fits.value = null; readFits(name); }, [name]);
  const answer = fits.value;
  return html`<section class="panel"><div class="row"><h2>What still fits</h2><button onClick=${() => readFits(name)}>Ask again</button></div>
    ${!answer ? html`<p class="hint">Planning …</p>` : answer.types.length === 0 ? html`<p class="hint">The cluster has no pods to compare with.</p>`
      : html`<table class="cards"><thead><tr><th>Like the pods of</th><th class="right">cpu</th><th class="right">memory</th><th class="right">More fit</th><th>Then</th></tr></thead>
      <tbody>${answer.types.map((each) => html`<tr key=${each.type + each.cpuMilli}><td>${each.type} <span class="hint">${plural(each.pods, "pod")}</span></td>
        <td class="right" data-label="cpu">${amount("cpu", each.cpuMilli)}</td><td class="right" data-label="memory">${amount("memory", each.memory)}</td>
        <td class="right" data-label="More fit"><b>${count(each.fits)}</b></td><td class="message" data-label="Then">${each.reason || "–"}</td></tr>`)}</tbody></table>`}</section>`;
}

function Volumes({ volumes }) {
  return html`<section class="panel"><h2>Volumes</h2>
    ${volumes.drivers.map((each) => html`<p key=${each.driver}><code>${each.driver}</code>: ${each.limit === null ? "no limit is known" : `at most ${plural(each.limit, "volume")}`}</p>`)}
    ${volumes.claims.length === 0 ? html`<p class="hint">No pod here uses a claim.</p>` : html`<ul>${volumes.claims.map((each) => html`<li key=${each.claim + each.pod}>${each.claim} <span class="hint">of</span> <a href=${podLink(each.pod)}>${each.pod}</a></li>`)}</ul>`}</section>`;
}

function Devices({ devices }) {
  return html`<section class="panel"><h2>Devices</h2>${devices.length === 0 ? html`<p class="hint">No driver publishes devices of this node.</p>` : html`<ul>${devices.map((each) => html`<li key=${each.driver + each.device}>
    <code>${each.driver}/${each.device}</code> ${each.claim ? html`<span class="hint">allocated to</span> ${each.claim}` : html`<span class="hint">free</span>`}</li>`)}</ul>`}</section>`;
}

export function Node() {
  const page = node.value;
  if (!page) return html`<h1><span class="hint">Node</span> ${route.value.key}</h1>${!problem.value && html`<p class="loading">Loading …</p>`}`;
  return html`<h1><span class="hint">Node</span> ${page.node}</h1>
    <p>${page.zone ? `zone ${page.zone}` : "no zone"}${page.unschedulable && html`, <b>cordoned</b>`} · <a href=${`#/whatif/node/${encodeURIComponent(page.node)}`}>What if it goes away?</a></p>
    <${Resources} resources=${page.resources} />
    <${Pods} page=${page} />
    <${Fits} name=${page.node} />
    <div class="thirds">
    <section class="panel"><h2>Taints</h2>${page.taints.length === 0 ? html`<p class="hint">None.</p>` : html`<ul>${page.taints.map((each) => html`<li><code>${each.key}${each.value && `=${each.value}`}:${each.effect}</code></li>`)}</ul>`}</section>
    <${Volumes} volumes=${page.volumes} /><${Devices} devices=${page.devices} /></div>
    <details class="panel"><summary>Labels</summary><ul>${Object.entries(page.labels).map(([key, value]) => html`<li><code>${key}=${value}</code></li>`)}</ul></details>`;
}
