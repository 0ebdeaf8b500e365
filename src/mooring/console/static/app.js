// The console: header, pages by address, keyboard.

import { html, render, useEffect, useRef } from "./lib.js";
import { filter, problem, route, start } from "./data.js";
import { Overview } from "./overview.js";
import { Queue } from "./queue.js";
import { Pod } from "./pod.js";
import { Node } from "./node.js";
import { Workloads } from "./workloads.js";
import { WhatIf } from "./whatif.js";

const PAGES = {
  overview: Overview,
  queue: Queue,
  workloads: Workloads,
  whatif: WhatIf,
  pod: Pod,
  node: Node,
};
// The pages of the header, with the keys that open them.
const LINKS = [
  ["overview", "#/", "Overview", "o"],
  ["queue", "#/queue", "Queue", "q"],
  ["workloads", "#/workloads", "Workloads", "w"],
  ["whatif", "#/whatif", "What if", "i"],
];
const GO_TO = "NAMESPACE/NAME of a pod";
const FILTERS = { overview: "Highlight nodes", queue: "Filter pods", workloads: "Filter workloads", node: "Filter pods" };
const KEYS = [["/", "filter; NAMESPACE/NAME and Enter go to a pod"], ...LINKS.map(([, , text, key]) => [key, text]), ["arrows, Enter", "select and open a node of the map, or a pod of the queue"], ["Escape", "clear the filter, close this"], ["?", "this help"]];

function Help({ dialog }) {
  return html`<dialog ref=${dialog} aria-label="Keyboard"><h2>Keyboard</h2>
    <dl>${KEYS.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl>
    <p class="hint">The console reads the scheduler and changes nothing; plans are undone.</p>
    <form method="dialog"><button>Close</button></form></dialog>`;
}

function App() {
  const input = useRef(null);
  const dialog = useRef(null);
  const { page } = route.value;
  useEffect(() => {
    const onKey = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.key === "Escape" && isTyping) { filter.value = ""; input.current.blur(); return; }
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
  return html`<header><strong>Mooring</strong><nav>${LINKS.map(([name, address, text]) => html`<a key=${name} href=${address} aria-current=${page === name ? "page" : undefined}>${text}</a>`)}</nav>
    <input ref=${input} type="search" aria-label=${filters} placeholder=${`${filters}  ( / )`} value=${filter.value}
      onInput=${(event) => { filter.value = event.target.value; }} onKeyDown=${goTo} />
    <button class="round" aria-label="Help" onClick=${() => dialog.current.showModal()}>?</button></header>
    ${problem.value && html`<p class="problem" role="alert">${problem.value}</p>`}
    <main><${Page} /></main><${Help} dialog=${dialog} />`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
start();
