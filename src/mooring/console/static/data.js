// Asks the server for the data of the page that is shown, once per second, and only while the page is visible.

import { signal, effect } from "./lib.js";

const EACH_MS = 1000;
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

function readRoute() {
  const [name = "", ...rest] = location.hash.replace(/^#\//, "").split("/");
  let parts = [];
  try { parts = rest.map(decodeURIComponent); } catch { /* an address that nobody made: show the overview */ }
  if (name === "pod" && parts.length === 2) return { page: "pod", key: parts.join("/") };
  if (name === "node" && parts.length === 1) return { page: "node", key: parts[0] };
  return { page: name === "queue" ? "queue" : "overview", key: "" };
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

async function get(path, parameters = {}) {
  const response = await fetch(`data/${path}?${new URLSearchParams(parameters)}`, { credentials: "same-origin" });
  if (response.ok) return response.json();
  throw new Failure(response.status, (await response.text()).slice(0, 300));
}

function explain(error) {
  if (error.code === 401) return "The session has ended. A new link: kubectl get --raw /console/link";
  if (error.code === 403) return "You are not allowed to see this: it needs get on the nonResourceURL /console/*.";
  if (error.code === 404 && route.value.page === "node") return `There is no node ${route.value.key}.`;
  if (error.code === 404) return "This cluster runs no scheduler of Mooring.";
  if (error.code) return `The server answers ${error.code}: ${error.message}`;
  return "The server does not answer. Its last data are shown.";
}

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

async function readNodes() {
  const known = nodes.value;
  const answer = await get("nodes", known ? { facts: known.facts } : {});
  const facts = answer.names ? answer : { ...answer, names: known.names, zone: known.zone, zones: known.zones };
  const columns = { cpu: bytes(answer.cpu), memory: bytes(answer.memory), pods: bytes(answer.pods) };
  columns.largest = columns.cpu.map((value, row) => Math.max(value, columns.memory[row], columns.pods[row]));
  nodes.value = { ...facts, flags: bytes(answer.flags), columns };
}

let earlier = null;

async function readOverview() {
  const answer = await get("overview");
  if (earlier && answer.nowSeconds > earlier.nowSeconds && answer.bound >= earlier.bound) {
    const rate = (answer.bound - earlier.bound) / (answer.nowSeconds - earlier.nowSeconds);
    samples.value = [...samples.value, rate].slice(-SAMPLES_MAX);
  }
  if (!earlier || answer.nowSeconds !== earlier.nowSeconds) earlier = answer;
  overview.value = answer;
}

const readers = {
  overview: () => Promise.all([readOverview(), readNodes()]),
  queue: async () => { queue.value = await get("queue", { filter: filter.value, state: queueState.value }); },
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
  effect(() => { void [route.value, filter.value, queueState.value]; queueMicrotask(read); });
  document.addEventListener("visibilitychange", read);
}
