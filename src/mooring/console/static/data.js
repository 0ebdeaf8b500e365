// Asks the server for the data of the page that is shown, once per second, and only while the page is visible.

import { signal, effect } from "./lib.js";

const EACH_MS = 1000;
const SAMPLES_MAX = 600;
const PLAIN_PAGES = ["queue", "workloads"]; // pages whose address has no more parts

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

async function answered(response) {
  if (response.ok) return response.json();
  throw new Failure(response.status, (await response.text()).slice(0, 2000).trim());
}

export const get = async (path, parameters = {}) => answered(await fetch(`data/${path}?${new URLSearchParams(parameters)}`, { credentials: "same-origin" }));

// The header is one that a form of another site cannot send: the server accepts no POST without it.
export const post = async (path, body) => answered(await fetch(`data/${path}`, { method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json", "X-Mooring-Console": "1" }, body: JSON.stringify(body) }));

export function explain(error) {
  if (error.code === 401) return "The session has ended. A new link: kubectl get --raw /console/link";
  if (error.code === 403 && error.message.includes("post")) return "You are not allowed to plan: it needs post on the nonResourceURL /console/*.";
  if (error.code === 403) return "You are not allowed to see this: it needs get on the nonResourceURL /console/*.";
  if (error.code === 404 && route.value.page === "node") return `There is no node ${route.value.key}.`;
  if (error.code === 404) return "This cluster runs no scheduler of Mooring.";
  if (error.code) return `The server answers ${error.code}: ${error.message}`;
  return "The server does not answer. Its last data are shown.";
}

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

async function readNodes() {
  const known = nodes.value;
  const answer = await get("nodes", { label: mapLabel.value, ...(known ? { facts: known.facts } : {}) });
  const facts = answer.names ? { ...answer, group: bytes(answer.group) } : { ...answer, names: known.names, labels: known.labels, group: known.group, groups: known.groups };
  nodes.value = { ...facts, flags: bytes(answer.flags), columns: { cpu: bytes(answer.cpu), memory: bytes(answer.memory), pods: bytes(answer.pods) } };
}

async function readOverview() {
  if (!samples.value.length) samples.value = (await get("history")).samples;
  const answer = await get("overview");
  if (answer.sample.time > (samples.value.at(-1)?.time ?? 0)) samples.value = [...samples.value, answer.sample].slice(-SAMPLES_MAX);
  overview.value = answer;
}

const readers = {
  overview: () => Promise.all([readOverview(), readNodes()]),
  queue: async () => { queue.value = await get("queue", { filter: filter.value, state: queueState.value, ...queueWindow.value, sort: queueOrder.value.sort, ...(queueOrder.value.descending && { descending: 1 }) }); },
  workloads: async () => { workloads.value = await get("workloads"); },
  whatif: async () => {},
  pod: async () => { const key = route.value.key; const answer = await get("pod", { pod: key }); if (key === route.value.key) pod.value = answer; },
  node: async () => { const key = route.value.key; const answer = await get("node", { node: key }); if (key === route.value.key) node.value = answer; },
};

let timer = 0;
let isReading = false;
let isAskedAgain = false;

async function read() {
  clearTimeout(timer);
  if (isReading) { isAskedAgain = true; return; }
  isReading = true;
  isAskedAgain = false;
  try {
    if (!document.hidden) {
      await readers[route.value.page]();
      problem.value = "";
    }
  } catch (error) {
    problem.value = explain(error);
  }
  isReading = false;
  timer = setTimeout(read, isAskedAgain ? 0 : EACH_MS);
}

export function start() {
  effect(() => { void [route.value, filter.value, queueState.value, queueOrder.value, queueWindow.value, mapLabel.value]; queueMicrotask(read); });
  document.addEventListener("visibilitychange", read);
}
