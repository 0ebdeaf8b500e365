"""Pages of the console about the scheduler as a whole: its source, its past, and its pause.

    /console/data/about           where the data come from, whether this scheduler leads, whether it is paused
    /console/data/past            times that can be looked at
    /console/data/past/at         ?time=SECONDS           the numbers and the queue as they were, or as they are
    /console/data/past/nodes      ?time=SECONDS&facts=…   the map as it was, as bytes (`scheduler.console.nodes`)
    /console/data/nodes           ?label=&facts=          all nodes now, as bytes
    /console/data/nodes/version   ?label=                 changes with them, for the live data
    /console/data/learn           ?pod=NAMESPACE/NAME     the next pods, and where the chosen pod is
    /console/do/pause             POST: no scheduling cycle begins (`scheduler.pause`)
    /console/do/step              POST: one cycle, or the binding after it
    /console/do/resume            POST: scheduling goes on

The pages about pods and nodes are in `scheduler_pages`, their data in `scheduler.console.data`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mooring.kit.clock import Clock
from mooring.scheduler.console.history import History
from mooring.scheduler.console.nodes import Document, NodeTable
from mooring.scheduler.pages import UNKNOWN_POD, pod_page
from mooring.scheduler.queue.queued_pod import QueuedPod
from mooring.scheduler.reporting.decision_log import DecisionLogError
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.pages import BINARY, PageRequest, PageResponse, as_json, naming_pods, text
from mooring.serving.server import Page

NEXT_SHOWN_MAX = 10
WALL_S_MAX = 253_402_300_800.0
"""The end of the year 9999, which timestamps can show."""


@dataclass(frozen=True, slots=True)
class ConsoleSource:
    """Where the data of a console come from."""

    is_recomputed: bool = False
    """Another scheduler decides: attempts are computed from the state of the API server."""
    server: str = ""
    not_read: tuple[str, ...] = ()
    """Kinds that could not be read, so that rules about them do not apply."""
    can_pause: bool = False


OWN_DECISIONS = ConsoleSource()


def console_pages(
    scheduler: Scheduler, clock: Clock, history: History, source: ConsoleSource, may_lead: Callable[[], bool]
) -> dict[str, Page]:
    """The pages by path. Those of Learn only if the scheduler may be paused."""

    def about(page_request: PageRequest) -> PageResponse:
        return as_json(
            {
                "recomputed": source.is_recomputed,
                "server": source.server,
                "notRead": list(source.not_read),
                "leads": may_lead(),
                "canPause": source.can_pause,
                "paused": scheduler.pause.document(),
            }
        )

    async def history_at(page_request: PageRequest) -> PageResponse:
        wall_s = page_request.number("time", -1.0) if page_request.has("time") else clock.wall_s()
        if not 0 <= wall_s < WALL_S_MAX:
            return text("time: wanted seconds since 1970\n", 400)
        try:
            return naming_pods(await history.at(wall_s), "waiting", "attempts")
        except DecisionLogError as error:
            return text(f"{error}\n", 503)

    def learn(page_request: PageRequest) -> PageResponse:
        return as_json(_learn(scheduler, clock, page_request.first("pod")))

    def action_page(action: Callable[[], None]) -> Page:
        def page(page_request: PageRequest) -> PageResponse:
            if page_request.method != "POST":
                return text("wanted POST\n", 405)
            action()
            return as_json({"paused": scheduler.pause.document()})

        return page

    pages: dict[str, Page] = {
        "/console/data/about": about,
        "/console/data/past": lambda page_request: as_json(history.times()),
        "/console/data/past/at": history_at,
    }
    if source.can_pause:
        pages |= {
            "/console/data/learn": learn,
            "/console/do/pause": action_page(scheduler.pause.pause),
            "/console/do/resume": action_page(lambda: scheduler.pause.resume("a user resumed it")),
            "/console/do/step": action_page(scheduler.pause.step),
        }
    return pages


def node_table_pages(history: History, clock: Clock) -> dict[str, Page]:
    """The pages about all nodes. They name nodes only, which have no namespace: nothing in them is masked."""

    def nodes(page_request: PageRequest) -> PageResponse:
        return _as_bytes(history.data.nodes(page_request.first("label")), page_request)

    def version(page_request: PageRequest) -> PageResponse:
        return as_json({"version": history.data.nodes(page_request.first("label")).version})

    def past_nodes(page_request: PageRequest) -> PageResponse:
        table = history.nodes_at(page_request.number("time", -1.0) if page_request.has("time") else clock.wall_s())
        return (
            _as_bytes(table, page_request) if table is not None else text("time: nothing was sampled before it\n", 404)
        )

    return {
        "/console/data/nodes": nodes,
        "/console/data/nodes/version": version,
        "/console/data/past/nodes": past_nodes,
    }


def _as_bytes(table: NodeTable, page_request: PageRequest) -> PageResponse:
    return PageResponse(table.encoded(page_request.first("facts")), content_type=BINARY)


def _learn(scheduler: Scheduler, clock: Clock, key: str) -> Document:
    """The pods that come next, bindings that are held, and the state and latest attempt of one pod."""
    bindings = scheduler.bindings.running
    parts = scheduler.queue, bindings, scheduler.waiting_pods, scheduler.engine
    rows = pod_page(key, *parts, clock)["pods"] if key.count("/") == 1 else []
    assert isinstance(rows, list), "the rows of a pod are a list"
    record = next(iter(scheduler.reports.decisions.recent(pod=key, limit=1)), None) if key else None
    return {
        "paused": scheduler.pause.document(),
        "next": [entry.pod.key for entry in scheduler.queue.next_entries(NEXT_SHOWN_MAX)],
        "held": [
            {"pod": binding.pod.key, "node": binding.node_name} for binding in bindings.values() if binding.is_held
        ],
        "waiting": sum(1 for entry in scheduler.queue.entries() if _waits(entry)),
        "pod": key,
        "states": [row for row in rows if row["state"] != UNKNOWN_POD],
        "record": record.document() if record is not None else None,
    }


def _waits(entry: QueuedPod) -> bool:
    return entry.was_rejected or entry.gating_plugin is not None
