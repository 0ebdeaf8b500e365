// Follows the data of the page that is shown: one stream of server-sent events, only while the page is visible.
// The stream is read with fetch: EventSource hides why a server refuses a stream.

import { signal, effect, batch } from "./lib.js";

const RETRY_MS = 1000;
const SAMPLES_MAX = 120;

export const route = signal(readRoute());
export const filter = signal("");
export const queueState = signal("");
export const problem = signal("");
export const overview = signal(null);
export const samples = signal([]); // pods bound per second, oldest first
export const nodes = signal(null);
export const queue = signal(null);
export const pod = signal(null);
export const node = signal(null);
export const past = signal(null); // times that the page Time can show
export const learn = signal(null);
export const learned = signal(""); // the pod whose scheduling the page Learn shows
export const about = signal(null); // where the data come from, and whether the scheduler is paused
export const updates = signal(0); // events so far

function readRoute() {
  const [name = "", ...rest] = location.hash.replace(/^#\//, "").split("/");
  let parts = [];
  try { parts = rest.map(decodeURIComponent); } catch { /* an address that nobody made: show the overview */ }
  if (name === "pod" && parts.length === 2) return { page: "pod", key: parts.join("/") };
  if (name === "node" && parts.length === 1) return { page: "node", key: parts[0] };
  return { page: ["queue", "time", "learn"].includes(name) ? name : "overview", key: "" };
}

addEventListener("hashchange", () => {
  pod.value = null;
  node.value = null;
  filter.value = "";
  route.value = readRoute();
  scrollTo(0, 0);
});

class Failure extends Error {
  constructor(code, message) { super(message); this.code = code; }
}

// Requests that change something: the server takes them from this page only.
export async function act(path) {
  const response = await fetch(`do/${path}`, { method: "POST", headers: { "X-Mooring-Console": "1" }, credentials: "same-origin" });
  if (!response.ok) problem.value = explain(new Failure(response.status, (await response.text()).slice(0, 300)), `do/${path}`);
}

export async function get(path, parameters = {}) {
  const response = await fetch(`data/${path}?${new URLSearchParams(parameters)}`, { credentials: "same-origin" });
  if (response.ok) return response.json();
  throw new Failure(response.status, (await response.text()).slice(0, 300));
}

export function explain(error, path = "*") {
  if (error.code === 401) return "The session has ended. Reload the page to see how to log in again.";
  if (error.code === 403 && path.startsWith("do/")) return `You are not allowed to do this: it needs post on the nonResourceURL /console/${path}.`;
  if (error.code === 403) return "You are not allowed to see this: it needs get on the nonResourceURL /console/*.";
  if (error.code === 404 && route.value.page === "node") return `There is no node ${route.value.key}.`;
  if (error.code === 404) return "This cluster runs no scheduler of Mooring.";
  if (error.code) return `The server answers ${error.code}: ${error.message}`;
  return "The server does not answer. Its last data are shown.";
}

// Plain loops: at 100,000 nodes a callback for each byte takes longer than everything else together.
function bytes(text) {
  const raw = atob(text);
  const column = new Uint8Array(raw.length);
  for (let row = 0; row < raw.length; row += 1) column[row] = raw.charCodeAt(row);
  return column;
}

function largest(columns) {
  const [first, ...others] = columns;
  const found = first.slice();
  for (const column of others) for (let row = 0; row < found.length; row += 1) if (column[row] > found[row]) found[row] = column[row];
  return found;
}

// Columns of nodes, with the names and zones that an earlier answer had.
export function decodeNodes(answer, known) {
  const facts = answer.names ? answer : { ...answer, names: known.names, zone: known.zone, zones: known.zones };
  const columns = { cpu: bytes(answer.cpu), memory: bytes(answer.memory), pods: bytes(answer.pods) };
  columns.largest = largest(Object.values(columns));
  return { ...facts, flags: bytes(answer.flags), columns };
}

let earlier = null;

function takeOverview(answer) {
  if (earlier && answer.nowSeconds > earlier.nowSeconds && answer.bound >= earlier.bound) {
    const rate = (answer.bound - earlier.bound) / (answer.nowSeconds - earlier.nowSeconds);
    samples.value = [...samples.value, rate].slice(-SAMPLES_MAX);
  }
  if (!earlier || answer.nowSeconds !== earlier.nowSeconds) earlier = answer;
  overview.value = answer;
}

// What a page follows: names of pages below data/, with parameters.
const FOLLOWED = {
  overview: () => ["overview", ["nodes", nodes.value ? { facts: nodes.value.facts } : {}]],
  queue: () => [["queue", { filter: filter.value, state: queueState.value }]],
  pod: () => [["pod", { pod: route.value.key }]],
  node: () => [["node", { node: route.value.key }]],
  time: () => ["past"],
  learn: () => [["learn", { pod: learned.value }]],
};
const TAKEN = {
  about: (answer) => { about.value = answer; },
  overview: takeOverview,
  nodes: (answer) => { nodes.value = decodeNodes(answer, nodes.value); },
  queue: (answer) => { queue.value = answer; },
  pod: (answer) => { pod.value = answer; },
  node: (answer) => { node.value = answer; },
  past: (answer) => { past.value = answer; },
  learn: (answer) => { learn.value = answer; },
  problem: (answer) => { throw new Failure(answer.code, answer.message); },
};

function take(event) {
  const [, name, data] = /^event: (\S+)\ndata: (.*)$/s.exec(event) ?? [];
  if (!name) return; // a heartbeat
  batch(() => {
    TAKEN[name](JSON.parse(data));
    updates.value += 1;
    if (name !== "about") problem.value = "";
  });
}

async function follow(signal) {
  const watched = ["about", ...FOLLOWED[route.value.page]()].map((each) => (typeof each === "string" ? each : `${each[0]}?${new URLSearchParams(each[1])}`));
  const query = new URLSearchParams(watched.map((each) => ["watch", each]));
  const response = await fetch(`data/live?${query}`, { credentials: "same-origin", signal });
  if (!response.ok) throw new Failure(response.status, (await response.text()).slice(0, 300));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    let from = Math.max(0, rest.length - 1); // the end of an event may be divided
    rest += value;
    for (let end = rest.indexOf("\n\n", from); end >= 0; end = rest.indexOf("\n\n")) {
      const event = rest.slice(0, end);
      rest = rest.slice(end + 2);
      if (signal.aborted) return;
      try { take(event); } catch (error) { if (!error.code) throw error; problem.value = explain(error); }
    }
  }
}

let stop = new AbortController();
let timer = 0;

// Ends the stream, and begins the one of the page that is shown now.
async function restart() {
  clearTimeout(timer);
  stop.abort();
  const controller = stop = new AbortController();
  if (document.hidden) return;
  try {
    await follow(controller.signal);
  } catch (error) {
    if (!controller.signal.aborted) problem.value = explain(error);
  }
  if (!controller.signal.aborted) timer = setTimeout(restart, RETRY_MS);
}

export function start() {
  effect(() => { void [route.value, filter.value, queueState.value, learned.value]; queueMicrotask(restart); });
  document.addEventListener("visibilitychange", restart);
}
