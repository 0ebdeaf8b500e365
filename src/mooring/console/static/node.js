// A node: requested and free amounts, taints, labels and pods.

import { html, Bar, amount, podLink, count } from "./lib.js";
import { node, filter, problem } from "./data.js";

function Resources({ resources }) {
  return html`<section class="panel"><h2>Resources</h2><table><thead><tr><th>Resource</th><th><span class="hidden">Share</span></th><th class="right">Requested</th><th class="right">Free</th><th class="right wide">Allocatable</th></tr></thead>
    <tbody>${resources.map(({ name, allocatable, requested }) => {
      const percent = allocatable ? (requested / allocatable) * 100 : requested ? 101 : 0;
      return html`<tr><td>${name}</td><td class="barcell"><${Bar} percent=${percent} label=${`${percent.toFixed(0)} % requested`} /></td>
        <td class="right">${amount(name, requested)} <span class="hint">${percent.toFixed(0)} %</span></td>
        <td class="right">${amount(name, allocatable - requested)}</td><td class="right wide">${amount(name, allocatable)}</td></tr>`;
    })}</tbody></table></section>`;
}

function Pods({ page }) {
  const shown = page.pods.filter((each) => each.pod.includes(filter.value));
  const cpu = page.resources.find((each) => each.name === "cpu")?.allocatable ?? 0;
  return html`<section class="panel"><h2>Pods <span class="hint">${count(page.podCount)}</span></h2>
    ${page.pods.length < page.podCount && html`<p class="hint">The first ${count(page.pods.length)} are shown.</p>`}
    ${shown.length === 0 ? html`<p class="hint">${page.podCount ? "No pod matches." : "No pods."}</p>` : html`<table><thead><tr><th>Pod</th><th><span class="hidden">Share</span></th><th class="right">cpu</th><th class="right">memory</th><th class="right wide">Priority</th></tr></thead>
    <tbody>${shown.map((each) => html`<tr key=${each.pod}><td><a href=${podLink(each.pod)}>${each.pod}</a>
      ${each.terminating && html` <span class="hint">terminating</span>`}${each.assumed && html` <span class="hint">being bound</span>`}</td>
      <td class="barcell"><${Bar} percent=${cpu ? (each.cpuMilli / cpu) * 100 : 0} label=${`${each.cpuMilli} millicores`} /></td>
      <td class="right">${amount("cpu", each.cpuMilli)}</td><td class="right">${amount("memory", each.memory)}</td><td class="right wide">${count(each.priority)}</td></tr>`)}</tbody></table>`}</section>`;
}

export function Node() {
  const page = node.value;
  if (!page) return !problem.value && html`<p class="loading">Loading …</p>`;
  return html`<h1><span class="hint">Node</span> ${page.node}</h1>
    <p>${page.zone ? `zone ${page.zone}` : "no zone"}${page.unschedulable && html`, <b>cordoned</b>`}</p>
    <${Resources} resources=${page.resources} />
    <section class="panel"><h2>Taints</h2>${page.taints.length === 0 ? html`<p class="hint">None.</p>` : html`<ul>${page.taints.map((each) => html`<li><code>${each.key}${each.value && `=${each.value}`}:${each.effect}</code></li>`)}</ul>`}</section>
    <${Pods} page=${page} />
    <details class="panel"><summary>Labels</summary><ul>${Object.entries(page.labels).map(([key, value]) => html`<li><code>${key}=${value}</code></li>`)}</ul></details>`;
}
