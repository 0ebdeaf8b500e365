// The overview: numbers, the map of all nodes, charts, the latest rejections.

import { html, signal, podLink, count, plural, timeOfDay, shortDuration, shortReason } from "./lib.js";
import { overview, nodes, samples, filter, problem, mapLabel } from "./data.js";
import { Chart } from "./charts.js";
import { Legend, NodeMap, METRICS } from "./map.js";

const metric = signal("requested");
const order = signal("name");
const REASONS_CHARTED = 7;

const rateText = (rate) => rate === null || rate === undefined ? "–" : rate < 10 ? String(Number(rate.toFixed(1))) : count(Math.round(rate));
const pair = (values) => values.map((each) => each === null ? "–" : shortDuration(each)).join(" / ");

const pendingOf = (counts) => counts.active + counts.backoff + counts.unschedulable + counts.gated;

function Numbers({ now }) {
  const { counts, numbers } = now;
  return html`<section class="numbers" aria-label="Numbers">
    <div class="tile"><h2>Bound per second</h2><b>${rateText(numbers.boundPerSecond)}</b><span>${count(now.bound)} so far, ${plural(now.rejected, "attempt")} rejected</span></div>
    <div class="tile"><h2>Waiting time p50 / p99</h2><b>${pair(numbers.boundWaits)}</b><span>pods bound in the last minute; pending now: ${pair(numbers.pendingWaits)}</span></div>
    <div class="tile"><h2>Pending</h2><b>${count(pendingOf(counts))}</b>
      <span>${counts.active} active, ${counts.backoff} in backoff, ${counts.unschedulable} unschedulable, ${counts.gated} gated</span></div>
    <div class="tile"><h2>Nodes</h2><b>${count(now.nodes)}</b><span>${plural(now.pods, "pod")} on nodes</span></div>
  </section>`;
}

function Charts({ now }) {
  const shown = [...samples.value, now.numbers];
  const times = shown.map((each) => each.time);
  const reasons = [...new Set(shown.flatMap((each) => Object.keys(each.reasons)))]
    .map((reason) => [reason, shown.map((each) => each.reasons[reason] ?? 0)])
    .sort(([, a], [, b]) => Math.max(...b) - Math.max(...a)).slice(0, REASONS_CHARTED);
  return html`<div class="charts">
    <section class="panel"><h2>Bound per second</h2>
      <${Chart} label="Pods bound per second over time" times=${times} series=${[["bound per second", shown.map((each) => each.boundPerSecond)]]} format=${rateText} /></section>
    <section class="panel"><h2>Waiting time of bound pods</h2>
      <${Chart} label="Waiting time of bound pods over time" times=${times} format=${shortDuration}
        series=${[["p50", shown.map((each) => each.boundWaits[0])], ["p99", shown.map((each) => each.boundWaits[1])]]} />
      <p class="hint legend-line"><span><i class="key s0"></i>p50</span><span><i class="key s1"></i>p99, dashed</span></p></section>
    <section class="panel"><h2>Pending pods by reason</h2>
      <${Chart} label="Pending pods by reason over time" times=${times} series=${reasons} isStacked format=${rateText} />
      <p class="hint legend-line">${reasons.map(([reason, values], place) => html`<span key=${reason}><i class=${`key s${place % 8}`}></i>${reason}: <b>${count(values.at(-1) ?? 0)}</b></span>`)}
        ${reasons.length === 0 && "No pod is pending."}
        ${now.pendingRead < pendingOf(now.counts) && `Counted: the first ${count(now.pendingRead)} pods of the queue.`}</p></section>
  </div>`;
}

function Rejections({ now }) {
  return html`<section class="panel"><h2>Latest rejections</h2>
    ${now.rejections.length === 0 && html`<p class="hint">${now.bound ? "The recent attempts all found a node." : "No pod was tried yet."}</p>`}
    <ul class="rejections">${now.rejections.map((each) => html`<li key=${each.pod}>
      <time datetime=${each.time}>${timeOfDay(each.time)}</time> <a href=${podLink(each.pod)}>${each.pod}</a>
      <span class="message" title=${each.message}>${shortReason(each.message)}</span></li>`)}</ul></section>`;
}

const Choice = ({ text, value, choices, onChange }) => html`<label>${text} <select value=${value} onChange=${(event) => onChange(event.target.value)}>
  ${choices.map(([each, name]) => html`<option key=${each} value=${each} selected=${each === value}>${name}</option>`)}</select></label>`;

function Nodes({ shown }) {
  const labels = shown.labels.map((label) => [label, label]);
  return html`<section class="panel"><div class="row"><h2>Nodes</h2>
      <${Choice} text="Show" value=${metric.value} choices=${Object.entries(METRICS).map(([name, { text }]) => [name, text])} onChange=${(value) => { metric.value = value; }} />
      <${Choice} text="Group by" value=${mapLabel.value} choices=${[["", "zone"], ...labels]} onChange=${(value) => { mapLabel.value = value; }} />
      <${Choice} text="Sort by" value=${order.value} choices=${[["name", "name"], ["level", "level, highest first"]]} onChange=${(value) => { order.value = value; }} />
      <${Legend} /></div>
      ${shown.names.length > 0 ? html`<${NodeMap} nodes=${shown} metric=${metric.value} order=${order.value} text=${filter.value} />` : html`<p class="hint">The cluster has no nodes.</p>`}
    </section>`;
}

export function Overview() {
  const now = overview.value;
  if (!now) return !problem.value && html`<p class="loading">Loading …</p>`;
  return html`<h1 class="hidden">Overview</h1>
    <${Numbers} now=${now} />
    ${nodes.value && html`<${Nodes} shown=${nodes.value} />`}
    <${Charts} now=${now} />
    <${Rejections} now=${now} />`;
}
