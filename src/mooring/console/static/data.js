// Follows the data of the page that is shown: one stream of server-sent events, only while the page is visible.
// The stream is read with fetch: EventSource hides why a server refuses a stream.

import { signal, effect, batch } from "./lib.js";

const RETRY_MS = 1000;
const SAMPLES_MAX = 720; // as many as the server keeps
const PLAIN_PAGES = ["queue", "workloads", "time", "learn"]; // pages whose address has no more parts

export const route = signal(readRoute());
export const filter = signal("");
export const queueState = signal("");
export const queueOrder = signal({ sort: "", descending: false });
export const queueWindow = signal({ offset: 0, limit: 100 });
export const problem = signal("");
export const overview = signal(null);
export const samples = signal([]); // of the charts, oldest first
export const workloads = signal(null);
export const mapLabel = signal(""); // the label by which the map groups nodes; empty: zones
export const nodes = signal(null);
export const queue = signal(null);
export const pod = signal(null);
export const node = signal(null);
export const past = signal(null); // times that the page Time can show
export const learn = signal(null);
export const learned = signal(""); // the pod whose scheduling the page Learn shows
export const about = signal(null); // where the data come from, and whether the scheduler is paused
export const updates = signal(0); // data taken so far

function readRoute() {
  const [name = "", ...rest] = location.hash.replace(/^#\//, "").split("/");
  let parts = [];
  try { parts = rest.map(decodeURIComponent); } catch { /* an address that nobody made: show the overview */ }
  if (name === "pod" && parts.length === 2) return { page: "pod", key: parts.join("/") };
  if (name === "node" && parts.length === 1) return { page: "node", key: parts[0] };
  if (name === "whatif") return { page: "whatif", key: parts.join("/") };
  return { page: PLAIN_PAGES.includes(name) ? name : "overview", key: "" };
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

// Requests that change the scheduler: the server takes them from this page only.
export async function act(path) {
  const response = await fetch(`do/${path}`, { method: "POST", headers: { "X-Mooring-Console": "1" }, credentials: "same-origin" });
  if (!response.ok) problem.value = explain(new Failure(response.status, (await response.text()).slice(0, 300)), `do/${path}`);
}

async function checked(response) {
  if (response.ok) return response;
  throw new Failure(response.status, (await response.text()).slice(0, 2000).trim());
}

const read = async (path, parameters) => checked(await fetch(`data/${path}?${new URLSearchParams(parameters)}`, { credentials: "same-origin" }));

export const get = async (path, parameters = {}) => (await read(path, parameters)).json();

// The header is one that a form of another site cannot send: the server accepts no POST without it.
export const post = async (path, body) => (await checked(await fetch(`data/${path}`, { method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json", "X-Mooring-Console": "1" }, body: JSON.stringify(body) }))).json();

// All nodes, as bytes: the length of the head, the head as JSON, and columns with one byte for each node. Names and
// groups are left out if they are those of `known`.
export async function getNodes(path, parameters = {}, known = null) {
  const answer = await (await read(path, { ...parameters, ...(known && { facts: known.facts }) })).arrayBuffer();
  const length = new DataView(answer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(answer, 4, length)));
  const columns = Object.fromEntries(head.columns.map((name, place) => [name, new Uint8Array(answer, 4 + length + place * head.rows, head.rows)]));
  const { names, labels, groups } = head.names ? head : known;
  return { facts: head.facts, names, labels, groups, group: columns.group ?? known.group, flags: columns.flags, columns };
}

export function explain(error, path = "*") {
  if (error.code === 401) return "The session has ended. Reload the page to see how to log in again.";
  if (error.code === 403 && path.startsWith("do/")) return `You are not allowed to do this: it needs post on the nonResourceURL /console/${path}.`;
  if (error.code === 403 && error.message.includes("post")) return "You are not allowed to plan: it needs post on the nonResourceURL /console/*.";
  if (error.code === 403) return "You are not allowed to see this: it needs get on the nonResourceURL /console/*.";
  if (error.code === 404 && route.value.page === "node") return `There is no node ${route.value.key}.`;
  if (error.code === 404) return "This cluster runs no scheduler of Mooring.";
  if (error.code) return `The server answers ${error.code}: ${error.message}`;
  return "The server does not answer. Its last data are shown.";
}

let isLoading = false;
let isOutdated = false;

// Requests the nodes, after an event has told that they changed. One request at a time: of the events that come
// meanwhile, the last one counts.
async function loadNodes() {
  isOutdated = true;
  if (isLoading) return;
  isLoading = true;
  while (isOutdated) {
    isOutdated = false;
    const label = mapLabel.value;
    try {
      const found = await getNodes("nodes", { label }, nodes.value);
      if (label === mapLabel.value) batch(() => { nodes.value = found; updates.value += 1; });
    } catch (error) {
      problem.value = explain(error);
      if (route.value.page === "overview") setTimeout(loadNodes, RETRY_MS); // no event comes until they change again
    }
  }
  isLoading = false;
}

let isHistoryAsked = false; // since the stream began: samples that came while there was none are missing

function takeOverview(answer) {
  if (!isHistoryAsked) { isHistoryAsked = true; get("history").then((found) => { samples.value = found.samples; }, () => { isHistoryAsked = false; }); }
  if (answer.sample.time > (samples.value.at(-1)?.time ?? 0)) samples.value = [...samples.value, answer.sample].slice(-SAMPLES_MAX);
  overview.value = answer;
}

// What a page follows: names of pages below data/, with parameters.
const FOLLOWED = {
  overview: () => ["overview", ["nodes/version", { label: mapLabel.value }]],
  queue: () => [["queue", { filter: filter.value, state: queueState.value, ...queueWindow.value, sort: queueOrder.value.sort, ...(queueOrder.value.descending && { descending: 1 }) }]],
  workloads: () => ["workloads"],
  whatif: () => [],
  pod: () => [["pod", { pod: route.value.key }]],
  node: () => [["node", { node: route.value.key }]],
  time: () => ["past"],
  learn: () => [["learn", { pod: learned.value }]],
};
const TAKEN = {
  about: (answer) => { about.value = answer; },
  overview: takeOverview,
  "nodes/version": loadNodes,
  queue: (answer) => { queue.value = answer; },
  workloads: (answer) => { workloads.value = answer; },
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
    if (name !== "nodes/version") updates.value += 1; // the nodes themselves are the update
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
  isHistoryAsked = false;
  if (document.hidden) return;
  try {
    await follow(controller.signal);
  } catch (error) {
    if (!controller.signal.aborted) problem.value = explain(error);
  }
  if (!controller.signal.aborted) timer = setTimeout(restart, RETRY_MS);
}

export function start() {
  effect(() => { void [route.value, filter.value, queueState.value, queueOrder.value, queueWindow.value, mapLabel.value, learned.value]; queueMicrotask(restart); });
  document.addEventListener("visibilitychange", restart);
}
