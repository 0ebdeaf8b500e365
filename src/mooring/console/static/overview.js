// The overview: numbers, the map of all nodes, pending pods by reason, the latest rejections.

import { html, signal, Bar, podLink, count, plural, timeOfDay } from "./lib.js";
import { overview, nodes, samples, filter, problem } from "./data.js";
import { NodeMap } from "./map.js";

const METRICS = { largest: "largest share", cpu: "cpu requested", memory: "memory requested", pods: "pods" };
const metric = signal("largest");

function Sparkline({ values }) {
  const largest = Math.max(1, ...values);
  const points = values.map((value, place) => `${(place / Math.max(1, values.length - 1)) * 100},${30 - (value / largest) * 28}`);
  return html`<svg class="sparkline" viewBox="0 0 100 30" preserveAspectRatio="none" role="img"
    aria-label=${`Pods bound per second in the last ${values.length} seconds, at most ${largest.toFixed(0)}`}>
    <polyline points=${points.join(" ")} /></svg>`;
}

function Numbers({ now }) {
  const { counts } = now;
  const waiting = counts.active + counts.backoff + counts.unschedulable + counts.gated;
  const rate = samples.value.at(-1) ?? 0;
  return html`<section class="numbers" aria-label="Numbers">
    <div class="tile"><h2>Bound per second</h2><b>${rate < 10 ? Number(rate.toFixed(1)) : count(Math.round(rate))}</b>
      <${Sparkline} values=${samples.value} /></div>
    <div class="tile"><h2>Bound so far</h2><b>${count(now.bound)}</b><span>${plural(now.rejected, "attempt")} rejected</span></div>
    <div class="tile"><h2>Pending</h2><b>${count(waiting)}</b>
      <span>${counts.active} active, ${counts.backoff} in backoff, ${counts.unschedulable} unschedulable, ${counts.gated} gated</span></div>
    <div class="tile"><h2>Nodes</h2><b>${count(now.nodes)}</b><span>${plural(now.pods, "pod")} on nodes</span></div>
  </section>`;
}

function Reasons({ now }) {
  const largest = Math.max(1, ...now.reasons.map(([, pods]) => pods));
  return html`<section class="panel"><h2>Pending pods by reason</h2>
    ${now.reasons.length === 0 && html`<p class="hint">No pod is pending.</p>`}
    <ul class="reasons">${now.reasons.slice(0, 10).map(([reason, pods]) => html`<li key=${reason}>
      <span>${reason}</span><b>${count(pods)}</b>
      <${Bar} percent=${(pods / largest) * 100} label=${`${pods} pods`} /></li>`)}</ul>
    ${now.pendingRead < now.counts.active + now.counts.backoff + now.counts.unschedulable + now.counts.gated
      && html`<p class="hint">Counted: the first ${count(now.pendingRead)} pods of the queue.</p>`}
  </section>`;
}

function Rejections({ now }) {
  return html`<section class="panel"><h2>Latest rejections</h2>
    ${now.rejections.length === 0 && html`<p class="hint">The recent attempts all found a node.</p>`}
    <ul class="rejections">${now.rejections.map((each) => html`<li key=${each.pod}>
      <time datetime=${each.time}>${timeOfDay(each.time)}</time> <a href=${podLink(each.pod)}>${each.pod}</a>
      <span class="message">${each.message}</span></li>`)}</ul></section>`;
}

export function Overview() {
  const now = overview.value;
  if (!now) return !problem.value && html`<p class="loading">Loading …</p>`;
  const shown = nodes.value;
  return html`<h1 class="hidden">Overview</h1>
    <${Numbers} now=${now} />
    <section class="panel"><div class="row"><h2>Nodes</h2>
      <label>Show <select value=${metric.value} onChange=${(event) => { metric.value = event.target.value; }}>
        ${Object.entries(METRICS).map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>
      <span class="legend"><i class="empty"></i> free <i class="full"></i> requested <i class="over"></i> above allocatable, × cordoned, / tainted</span></div>
      ${shown && shown.names.length > 0 && html`<${NodeMap} nodes=${shown} metric=${metric.value} text=${filter.value} />`}
      ${shown && shown.names.length === 0 && html`<p class="hint">The cluster has no nodes.</p>`}
    </section>
    <div class="columns"><${Reasons} now=${now} /><${Rejections} now=${now} /></div>`;
}
