// The console: header, pages by address, keyboard.

import { html, render, timeOfDay, useEffect, useRef } from "./lib.js";
import { about, filter, problem, route, start } from "./data.js";
import { Overview } from "./overview.js";
import { Queue } from "./queue.js";
import { Pod } from "./pod.js";
import { Node } from "./node.js";
import { Workloads } from "./workloads.js";
import { WhatIf } from "./whatif.js";
import { Time } from "./time.js";
import { Learn } from "./learn.js";

const PAGES = {
  overview: Overview,
  queue: Queue,
  workloads: Workloads,
  whatif: WhatIf,
  time: Time,
  learn: Learn,
  pod: Pod,
  node: Node,
};
// The pages of the header, with the keys that open them.
const LINKS = [
  ["overview", "#/", "Overview", "o"],
  ["queue", "#/queue", "Queue", "q"],
  ["workloads", "#/workloads", "Workloads", "w"],
  ["whatif", "#/whatif", "What if", "i"],
  ["time", "#/time", "Time", "t"],
  ["learn", "#/learn", "Learn", "l"],
];
const GO_TO = "NAMESPACE/NAME of a pod";
const FILTERS = { overview: "Highlight nodes", queue: "Filter pods", workloads: "Filter workloads", node: "Filter pods", time: "Filter pods", learn: "Filter pods" };
const KEYS = [["/", "filter; NAMESPACE/NAME and Enter go to a pod"], ...LINKS.map(([, , text, key]) => [key, text]), ["← → ↑ ↓, Enter", "select and open a node of the map (← or → begins), or a pod of the queue"], ["Escape", "clear the filter, close this"], ["?", "this help"]];

function Help({ dialog }) {
  return html`<dialog ref=${dialog} aria-label="Keyboard"><h2>Keyboard</h2>
    <dl>${KEYS.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl>
    <p class="hint">The console follows the scheduler. Only the buttons of Learn change it; plans are undone.</p>
    <form method="dialog"><button>Close</button></form></dialog>`;
}

// What the reader must know on every page.
function Notices() {
  const now = about.value;
  if (!now) return null;
  return html`${now.recomputed && html`<p class="notice" role="status"><b>Recomputed.</b> Another scheduler decides in this cluster${now.server && html` (<code>${now.server}</code>)`}. The queue and the attempts are computed here, from the state of the API server; each pod is decided as if it were next.${now.notRead.length > 0 && html` Not read, and ignored: ${now.notRead.join(", ")}.`}</p>`}
    ${!now.recomputed && !now.leads && html`<p class="notice" role="status"><b>Standby.</b> Another scheduler has the Lease. This one makes no decisions.</p>`}
    ${now.paused && html`<p class="notice" role="status"><b>Paused.</b> Scheduling goes on at ${timeOfDay(now.paused.until)} at the latest. <a href="#/learn">Step or resume</a></p>`}`;
}

function App() {
  const input = useRef(null);
  const dialog = useRef(null);
  const { page } = route.value;
  useEffect(() => {
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || dialog.current.open) return;
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.key === "Escape") { if (!isTyping || event.target === input.current) filter.value = ""; event.target.blur?.(); return; }
      if (isTyping) return;
      if (event.key === "/") { event.preventDefault(); input.current.focus(); }
      else if (event.key === "?") dialog.current.showModal();
      else location.hash = LINKS.find(([, , , key]) => key === event.key)?.[1] ?? location.hash;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const goTo = (event) => {
    if (event.key === "Enter" && /^[^/]+\/[^/]+$/.test(filter.value)) location.hash = `#/pod/${filter.value.split("/").map(encodeURIComponent).join("/")}`;
  };
  const Page = PAGES[page];
  const filters = FILTERS[page] ?? GO_TO;
  return html`<header><strong>Mooring</strong><nav>${LINKS.filter(([name]) => name !== "learn" || about.value?.canPause).map(([name, address, text]) => html`<a key=${name} href=${address} aria-current=${page === name ? "page" : undefined}>${text}</a>`)}</nav>
    <input ref=${input} type="search" aria-label=${filters} placeholder=${`${filters}  ( / )`} value=${filter.value}
      onInput=${(event) => { filter.value = event.target.value; }} onKeyDown=${goTo} />
    <button class="round" aria-label="Help" onClick=${() => dialog.current.showModal()}>?</button></header>
    ${problem.value && html`<p class="problem" role="alert">${problem.value}</p>`}
    <${Notices} />
    <main><${Page} /></main><${Help} dialog=${dialog} />`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
start();
