"""The console on a large cluster: what an open page costs the scheduler, and how long a browser works for it.

    python -m bench.console            5,000 nodes for the scheduler, 100,000 nodes in the browser
    python -m bench.console --quick    a small cluster: does everything work?

1. The cost of a page is CPU time: the same pods are scheduled with and without an open overview, in turns in one
   process, and the difference is divided by the time that passed. `loop-plain` uses a whole core, so that this share is
   what a page takes of it.
2. The browser reports the time of its scripts. It shows the overview while 1,000 pods per second get nodes.
3. Without chromium only the figures of the server are measured.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import click

from bench.live import _load
from bench.live_cluster import PodToCreate, live_cluster, pods_to_create
from bench.plans import node, pod
from bench.results import Figure, print_figures
from bench.scenario import Scenario
from bench.workload import Size, read_workload
from mooring.client.interface import UnavailableClient
from mooring.cluster.scheduler_pages import scheduler_state_pages
from mooring.cluster.secure_port import ConsoleLogin, SecurePort, open_secure_port
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config import load_configuration
from mooring.scheduler.console.data import ConsoleData
from mooring.scheduler.console.history import History
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.tls import ServingTls
from tests.console.browser import PROGRAM, Browser

NODES, NODES_QUICK = 100_000, 500
LOOP_NODES = 5_000
TURNS = 6
TURN_S = 5.0
BATCHES_PER_S = 10
PODS_PER_BATCH = 20
UPDATES = 10
SAMPLES = 20
PENDING, PENDING_QUICK = 10_000, 100
PODS_PER_UPDATE = 1_000

READER = """
import http.client, json, ssl, sys
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
host, token = sys.argv[1:]
connection = http.client.HTTPSConnection(host, context=context)
connection.request("GET", f"/console/login?token={token}")
response = connection.getresponse()
cookie = response.headers["Set-Cookie"].partition(";")[0]
response.read()
headers = {"Cookie": cookie}
watched = "watch=about&watch=overview&watch=nodes/version"
connection.request("GET", f"/console/data/live?{watched}", headers=headers)
response = connection.getresponse()
assert response.status == 200
nodes, facts = http.client.HTTPSConnection(host, context=context), ""
while line := response.readline():
    if line == b"event: nodes/version\\n":
        nodes.request("GET", f"/console/data/nodes?facts={facts}", headers=headers)
        table = nodes.getresponse().read()
        facts = json.loads(table[4 : 4 + int.from_bytes(table[:4], "little")])["facts"]
"""
"""An open overview, without a browser."""


@asynccontextmanager
async def served(scheduler: Scheduler, clock: SystemClock) -> AsyncIterator[tuple[str, History]]:
    """The console of a scheduler; a link that logs in once."""
    links: list[str] = []
    history = History(scheduler, clock)
    pages = scheduler_state_pages(scheduler, clock, lambda: True, history)
    port = SecurePort("127.0.0.1", 0, ServingTls("bench"), is_lookup_skipped=True, console=ConsoleLogin(links.append))
    async with open_secure_port(port, pages, clock, Entropy(1)):
        yield links[0], history


@contextmanager
def reading(link: str) -> Iterator[None]:
    host, _, token = link.removeprefix("https://").partition("/console/login?token=")
    with subprocess.Popen([sys.executable, "-c", READER, host, token]) as process:
        try:
            yield
            assert process.poll() is None, "the page was closed"
        finally:
            process.kill()


async def page_cost(nodes: int, turn_s: float) -> Figure:
    clock = SystemClock()
    per_turn = int(turn_s * BATCHES_PER_S) * PODS_PER_BATCH
    size = Size(nodes=nodes, placed=2 * nodes, pods=(TURNS + 1) * per_turn, warm_up=0)
    scenario = Scenario(read_workload("loop-plain"), size)
    items = list(islice(scenario.measured(), size.pods))
    async with live_cluster() as cluster, TaskGroup("bench") as group:
        await _load(cluster, scenario, items)
        await cluster.start(group)
        pods = iter(pods_to_create(items))

        async def turn() -> float:
            """The CPU time of the process, as a share of one core."""
            cpu_s, started_s = process_time(), clock.now_s()
            for _ in range(int(turn_s * BATCHES_PER_S)):
                batch: list[PodToCreate] = list(islice(pods, PODS_PER_BATCH))
                await cluster.create(batch)
                await clock.wait(1 / BATCHES_PER_S)
            return (process_time() - cpu_s) / (clock.now_s() - started_s)

        shares: dict[bool, list[float]] = {False: [], True: []}
        async with served(cluster.scheduler, clock) as (_, history):
            group.start_background(history.run(), name="history")
            await turn()
        for number in range(TURNS):
            is_open = number % 2 == 1
            async with served(cluster.scheduler, clock) as (link, _):
                if not is_open:
                    shares[False].append(await turn())
                    continue
                with reading(link):
                    await clock.wait(1.0)  # the login and the first answer, with all names, come once
                    shares[True].append(await turn())
    cost = min(shares[True]) - min(shares[False])
    return Figure(f"an open overview of {nodes:,} nodes, of a core", 100 * cost, "%", at_most=5.0)


def sample_cost(pending: int) -> Figure:
    """CPU time of a sample for the charts, which is taken whether a page is open or not."""
    clock = SystemClock()
    scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=clock, entropy=Entropy(1))
    scheduler.engine.put(node("node-0", 16, "a"))
    for number in range(pending):
        scheduler.queue.add(scheduler.engine.record(pod(f"p{number}", "99")))
    while (entry := scheduler.queue.pop()) is not None:
        cycle = scheduler.engine.prepare(entry.pod)
        decision = cycle.decide_admitted(entry.pod)
        scheduler.reports.decisions.add(decision, 1, 0.0, "", cycle.last_steps)
        scheduler.queue.requeue(entry, decision.unschedulable_plugins, decision.pending_plugins, is_error=False)
    began_s = process_time()
    for _ in range(SAMPLES):
        ConsoleData(scheduler, clock).sample()
    cost_ms = 1000 * (process_time() - began_s) / SAMPLES
    return Figure(f"a sample for the charts, {pending:,} pending pods", cost_ms, "ms")


async def in_the_browser(nodes: int, updates: int) -> list[Figure]:
    assert PROGRAM is not None
    clock = SystemClock()
    scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=clock, entropy=Entropy(1))
    for number in range(nodes):
        scheduler.engine.put(node(f"node-{number:06}", 16, "abc"[number % 3]))
    serial = count()

    def place(pods: int) -> None:
        for number in islice(serial, pods):
            scheduler.engine.put(pod(f"p{number}", "800m", on=f"node-{number * 7919 % nodes:06}"))

    place(nodes)
    figures: list[Figure] = []
    async with served(scheduler, clock) as (link, history), TaskGroup("bench") as group:

        async def keep_placing() -> None:
            while True:
                place(PODS_PER_UPDATE)
                await clock.wait(1.0)

        group.start_background(keep_placing(), name="pods")
        with TemporaryDirectory() as folder:
            figures += await asyncio.to_thread(_measure_in_browser, link, Path(folder), nodes, updates)
        table = history.data.nodes()
        update = table.encoded(table.facts)
    figures.append(Figure(f"one update of {nodes:,} nodes", len(update) / 1024, "KiB"))
    return figures


def _measure_in_browser(link: str, folder: Path, nodes: int, updates: int) -> list[Figure]:
    assert PROGRAM is not None
    drawn = "document.querySelector('.map canvas')?.style.height && performance.now()"
    counted = "import('/console/data.js').then((data) => data.updates.value)"
    with Browser(PROGRAM, folder) as browser:
        browser.resize(1280, 1000)
        browser.open(link)
        first_ms = float(browser.wait(drawn))
        paint = "performance.getEntriesByType('paint').find((each) => each.name === 'first-contentful-paint').startTime"
        paint_ms = float(browser.wait(paint))
        browser.call("Performance.enable")
        begun, before_s = browser.evaluate(counted), _script_s(browser)
        while (seen := browser.evaluate(counted)) < begun + 2 * updates:  # the overview, and the nodes
            browser.evaluate("new Promise((done) => setTimeout(done, 200))")
        script_ms = 1000 * (_script_s(browser) - before_s) / ((seen - begun) / 2)
        assert browser.problems == [], browser.problems
    return [
        Figure(f"first paint, {nodes:,} nodes", paint_ms, "ms", at_most=1_000),
        Figure(f"map of {nodes:,} nodes drawn, after the page began", first_ms, "ms"),
        Figure(f"script time of one update, {nodes:,} nodes", script_ms, "ms", at_most=16),
    ]


def _script_s(browser: Browser) -> float:
    metrics = {metric["name"]: metric["value"] for metric in browser.call("Performance.getMetrics")["metrics"]}
    return float(metrics["ScriptDuration"])


def measure(quick: bool) -> Iterator[Figure]:
    yield run_real(page_cost(NODES_QUICK if quick else LOOP_NODES, 1.0 if quick else TURN_S))
    yield sample_cost(PENDING_QUICK if quick else PENDING)
    if PROGRAM is None:
        click.echo("browser: not installed (tools/ensure_browser.sh installs it), so nothing is measured in one")
        return
    yield from run_real(in_the_browser(NODES_QUICK if quick else NODES, 2 if quick else UPDATES))


@click.command()
@click.option("--quick", is_flag=True, help="A small cluster: does everything work?")
def main(quick: bool) -> None:
    """What the console costs, on the server and in the browser."""
    figures = print_figures(measure(quick))
    if not quick and not all(figure.is_reached for figure in figures):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
