// The console: header, pages by address, keyboard.

import { html, render, useEffect, useRef } from "./lib.js";
import { filter, problem, route, start } from "./data.js";
import { Overview } from "./overview.js";
import { Queue } from "./queue.js";
import { Pod } from "./pod.js";
import { Node } from "./node.js";

const PAGES = { overview: Overview, queue: Queue, pod: Pod, node: Node };
const FILTERS = { overview: "Highlight nodes", queue: "Filter pods", node: "Filter pods", pod: "NAMESPACE/NAME of a pod" };
const KEYS = [["/", "filter; on a pod's page: go to a pod"], ["o", "overview"], ["q", "queue"], ["arrows, Enter", "select and open a node of the map"], ["Escape", "clear the filter, close this"], ["?", "this help"]];

function Help({ dialog }) {
  return html`<dialog ref=${dialog} aria-label="Keyboard"><h2>Keyboard</h2>
    <dl>${KEYS.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl>
    <p class="hint">The page reads the scheduler once per second and changes nothing.</p>
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
      else if (event.key === "o") location.hash = "#/";
      else if (event.key === "q") location.hash = "#/queue";
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const goTo = (event) => {
    if (event.key === "Enter" && /^[^/]+\/[^/]+$/.test(filter.value)) location.hash = `#/pod/${filter.value.split("/").map(encodeURIComponent).join("/")}`;
  };
  const Page = PAGES[page];
  const link = (name, address, text) => html`<a href=${address} aria-current=${page === name ? "page" : undefined}>${text}</a>`;
  return html`<header><strong>Mooring</strong><nav>${link("overview", "#/", "Overview")}${link("queue", "#/queue", "Queue")}</nav>
    <input ref=${input} type="search" aria-label=${FILTERS[page]} placeholder=${`${FILTERS[page]}  ( / )`} value=${filter.value}
      onInput=${(event) => { filter.value = event.target.value; }} onKeyDown=${goTo} />
    <button class="round" aria-label="Help" onClick=${() => dialog.current.showModal()}>?</button></header>
    ${problem.value && html`<p class="problem" role="alert">${problem.value}</p>`}
    <main><${Page} /></main><${Help} dialog=${dialog} />`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
start();
