"""The pages of a scheduler's secure port.

Input: the scheduler, its elector, its configuration and flags. Output: pages by path.

    /healthz /livez /readyz    and each check below them
    /metrics                   metrics under kube-scheduler's names
    /metrics/resources         requests of each pod; empty on a standby
    /configz /flagz /statusz   configuration, flags, version and uptime
    /debug/queue               pods in the scheduling queue, with reasons     ?pod=NAMESPACE/NAME&nearest=5
    /debug/cache               nodes and assumed pods in the cache            ?node=NAME
    /debug/decisions           recent decisions                               ?pod=NAMESPACE/NAME&limit=100
    /plan                      POST a request: what would happen
    /console/data/…            the data of the web console (`scheduler.console.data`, `cluster.console_pages`)
    /debug/pprof/…             profiles, with enableProfiling
    /debug/flags/v             PUT a number: the log verbosity

Plans run one after the other, in slices between scheduling cycles. A plan ends when its client disconnects.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import msgspec
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import Metric

from mooring import __version__
from mooring.api.views.workloads import Namespace
from mooring.apiserver.wire.yaml_text import written_yaml
from mooring.client.election import LeaderElector
from mooring.cluster.component_metrics import add_kubernetes_gauges, add_leader_gauge
from mooring.cluster.console_pages import OWN_DECISIONS, ConsoleSource, console_pages, node_table_pages
from mooring.kit.clock import Clock
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.load import encode_configuration
from mooring.scheduler.config.types import SchedulerConfiguration
from mooring.scheduler.console.data import ConsoleData
from mooring.scheduler.console.history import History
from mooring.scheduler.console.pods import pod_types
from mooring.scheduler.console.queue import WINDOW_MAX
from mooring.scheduler.pages import cache_page, pod_page, pod_resources_text, queue_page
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import PlanError, PlanRequest, PlanResult, decode_request, pods_named
from mooring.scheduler.plan.slices import NoChanges, run_in_slices
from mooring.scheduler.plan.what_if import OutdatedPlan
from mooring.scheduler.reporting.decision_records import SHOWN_MAX
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.endpoints import Check, configuration_page, flags_page, health_pages, ping, status_page
from mooring.serving.pages import (
    METRICS,
    PageRequest,
    PageResponse,
    as_json,
    is_whole_number,
    named_namespaces,
    namespaces_of,
    naming_pods,
    text,
)
from mooring.serving.profiling import Profiler
from mooring.serving.server import Page

EMULATES = "1.36"
LISTED = ("/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz")


@dataclass(frozen=True, slots=True)
class PageSources:
    """Everything that the pages read."""

    name: str
    scheduler: Scheduler
    elector: LeaderElector | None
    configuration: SchedulerConfiguration
    flags: Mapping[str, str]
    metrics: CollectorRegistry
    hidden_metrics: frozenset[str]
    may_lead: Callable[[], bool]
    is_stopping: Callable[[], bool]
    clock: Clock
    history: History
    set_verbosity: Callable[[int], None] | None = None


def scheduler_pages(sources: PageSources) -> dict[str, Page]:
    """Every page, by its path."""
    started_wall_s, started_s = sources.clock.wall_s(), sources.clock.now_s()
    _add_gauges(sources)

    def statusz(page_request: PageRequest) -> PageResponse:
        return status_page(
            sources.name,
            started_wall_s=started_wall_s,
            up_s=sources.clock.now_s() - started_s,
            version=__version__,
            emulates=EMULATES,
            paths=LISTED,
        )

    pages: dict[str, Page] = {
        **health_pages(_checks(sources)),
        "/metrics": lambda page_request: PageResponse(_metrics(sources), content_type=METRICS),
        "/configz": lambda page_request: configuration_page(encode_configuration(sources.configuration)),
        "/flagz": lambda page_request: flags_page(sources.name, sources.flags),
        "/statusz": statusz,
        **scheduler_state_pages(sources.scheduler, sources.clock, sources.may_lead, sources.history),
    }
    if sources.configuration.enable_profiling:
        pages |= Profiler(sources.clock).pages()
        if sources.set_verbosity is not None:
            pages["/debug/flags/v"] = _verbosity_page(sources.set_verbosity)
    return pages


def scheduler_state_pages(
    scheduler: Scheduler,
    clock: Clock,
    may_lead: Callable[[], bool],
    history: History,
    source: ConsoleSource = OWN_DECISIONS,
) -> dict[str, Page]:
    """The pages about the pods and nodes of a scheduler."""

    def cache(page_request: PageRequest) -> PageResponse:
        node = page_request.first("node")
        return as_json(cache_page(scheduler.engine.columns, scheduler.assumed_pods, node=node))

    def resources(page_request: PageRequest) -> PageResponse:
        return PageResponse(_resources(scheduler) if may_lead() else b"", content_type=METRICS)

    naming: dict[str, Page] = {
        "/debug/cache": cache,
        "/debug/decisions": lambda page_request: _decisions(scheduler, page_request),
        "/debug/queue": lambda page_request: _queue(scheduler, clock, page_request),
        **PlanPages(scheduler, clock).pages(),
        **_console_pages(history.data),
        **console_pages(scheduler, clock, history, source, may_lead),
    }
    return {path: _naming(scheduler, clock, page) for path, page in naming.items()} | {
        **node_table_pages(history, clock),
        "/metrics/resources": resources,
    }


def _console_pages(data: ConsoleData) -> dict[str, Page]:
    def node(page_request: PageRequest) -> PageResponse:
        name = page_request.first("node")
        found = data.node(name)
        return as_json(found) if found is not None else text(f"node: there is no node {name!r}\n", 404)

    def pod(page_request: PageRequest) -> PageResponse:
        key = page_request.first("pod")
        return _unreadable(key) or as_json(data.pod(key))

    async def explain(page_request: PageRequest) -> PageResponse:
        key = page_request.first("pod")
        return _unreadable(key) or as_json(await data.explain(key))

    def manifest(page_request: PageRequest) -> PageResponse:
        key = page_request.first("pod")
        found = data.manifest(key)
        missing = text(f"pod: the scheduler has no pod {key!r}\n", 404)
        return _unreadable(key) or (
            as_json({"pod": key, "manifest": written_yaml(found).decode()}) if found else missing
        )

    def queue(page_request: PageRequest) -> PageResponse:
        sort, offset, limit = (page_request.first(name) for name in ("sort", "offset", "limit"))
        if sort and sort not in data.queue_columns:
            return text(f"sort: found {sort!r}, wanted one of {', '.join(data.queue_columns)}\n", 400)
        for name, value in (("offset", offset), ("limit", limit)):
            if value and not is_whole_number(value):
                return text(f"{name}: found {value!r}, wanted a number\n", 400)
        found = data.queue(
            page_request.first("filter"),
            page_request.first("state"),
            offset=int(offset or 0),
            limit=int(limit or WINDOW_MAX),
            sort=sort,
            descending=bool(page_request.first("descending")),
        )
        return as_json(found)

    return {
        "/console/data/explain": explain,
        "/console/data/history": lambda page_request: as_json(data.history()),
        "/console/data/manifest": manifest,
        "/console/data/node": node,
        "/console/data/overview": lambda page_request: naming_pods(data.overview(), "rejections"),
        "/console/data/pod": pod,
        "/console/data/queue": queue,
        "/console/data/workloads": lambda page_request: as_json(data.workloads()),
    }


def _naming(scheduler: Scheduler, clock: Clock, page: Page) -> Page:
    """A page that lists the namespaces of the objects that it and its request name."""

    async def named(page_request: PageRequest) -> PageResponse:
        answer = page(page_request)
        response = await answer if inspect.isawaitable(answer) else answer
        known = {namespace.metadata.name for namespace in scheduler.engine.columns.objects.of(Namespace)}
        requested = response.requested_namespaces | namespaces_of(page_request.query.get("pod", ()))
        named = await named_namespaces(response.body, known | response.namespaces | requested, clock)
        return replace(response, namespaces=named, requested_namespaces=requested)

    return named


def _checks(sources: PageSources) -> dict[str, dict[str, Check]]:
    def loop() -> str:
        return "" if sources.is_stopping() else sources.scheduler.loop.problem()

    alive: dict[str, Check] = {"ping": ping, "scheduling-loop": loop}
    election: dict[str, Check] = (
        {"leaderElection": sources.elector.health_problem} if sources.elector is not None else {}
    )
    healthy = {**alive, **election}
    ready: dict[str, Check] = {
        **election,
        "shutdown": lambda: "process is shutting down" if sources.is_stopping() else "",
        "sched-handler-sync": lambda: "" if sources.scheduler.has_synced else "handlers are not fully synchronized",
    }
    return {"healthz": healthy, "livez": alive, "readyz": ready}


def _add_gauges(sources: PageSources) -> None:
    elector = sources.elector
    if elector is not None:
        add_leader_gauge(sources.metrics, sources.name, lambda: elector.is_leading)
    info = Gauge("mooring_build_info", "What runs here.", ("version", "emulates"), registry=sources.metrics)
    info.labels(__version__, EMULATES).set(1)
    add_kubernetes_gauges(sources.metrics)


def _metrics(sources: PageSources) -> bytes:
    if not sources.hidden_metrics:
        return generate_latest(sources.metrics)
    return generate_latest(_Visible(sources.metrics, sources.hidden_metrics))


class _Visible(CollectorRegistry):
    """A registry without some of its metrics."""

    def __init__(self, whole: CollectorRegistry, hidden: frozenset[str]) -> None:
        super().__init__(auto_describe=False)
        self._whole = whole
        self._hidden = hidden

    def collect(self) -> Iterator[Metric]:
        for metric in self._whole.collect():
            if metric.name not in self._hidden and f"{metric.name}_total" not in self._hidden:
                yield metric


def _queue(scheduler: Scheduler, clock: Clock, page_request: PageRequest) -> PageResponse:
    pod, nearest = page_request.first("pod"), page_request.first("nearest") or "0"
    parts = scheduler.queue, scheduler.bindings.running, scheduler.waiting_pods
    if not is_whole_number(nearest):
        return text(f"nearest: found {nearest!r}, wanted a number\n", 400)
    if not pod:
        paused = scheduler.pause.document()
        return as_json(queue_page(*parts, clock) | ({"paused": paused} if paused is not None else {}))
    return _unreadable(pod) or as_json(pod_page(pod, *parts, scheduler.engine, clock, int(nearest)))


def _decisions(scheduler: Scheduler, page_request: PageRequest) -> PageResponse:
    pod, limit = page_request.first("pod"), page_request.first("limit") or str(SHOWN_MAX)
    if not is_whole_number(limit):
        return text(f"limit: found {limit!r}, wanted a number\n", 400)
    recent = list(scheduler.reports.decisions.recent(pod=pod, limit=int(limit)))
    # A namespace of a record may have been deleted since.
    namespaces = frozenset(key.partition("/")[0] for record in recent for key in (record.pod, *record.victims))
    response = as_json([record.document() for record in recent])
    return (_unreadable(pod) if pod else None) or replace(response, namespaces=namespaces)


def _unreadable(pod: str) -> PageResponse | None:
    """An error for a name without a namespace, which would find no pod."""
    return text(f"pod: found {pod!r}, wanted NAMESPACE/NAME\n", 400) if pod.count("/") != 1 else None


def _resources(scheduler: Scheduler) -> bytes:
    placed: Mapping[str, PodInfo] = scheduler.engine.columns.pods
    pending = (entry.pod for entry in scheduler.queue.entries() if entry.pod.uid not in placed)
    return pod_resources_text(chain(placed.values(), pending))


def _verbosity_page(set_verbosity: Callable[[int], None]) -> Page:
    def page(page_request: PageRequest) -> PageResponse:
        if page_request.method != "PUT":
            return text("unsupported http method\n", 406)
        number = page_request.body.decode(errors="replace").strip()
        if not is_whole_number(number):
            return text(f"failed to set klog.logging.verbosity to {number!r}: wanted a number\n", 400)
        set_verbosity(int(number))
        return text(f"successfully set klog.logging.verbosity to {number}")

    return page


# --- plans ----------------------------------------------------------------------------------------------------


PLAN_RETRY_S = 0.005


class PlanPages:
    """The pages of one scheduler."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._turn = asyncio.Lock()
        self._planner = Planner(scheduler.engine, scheduler.pending_pods)

    def pages(self) -> dict[str, Page]:
        return {"/plan": self._plan_page, "/console/data/plan": self._plan_page, "/console/data/fits": self._fits_page}

    async def _plan_page(self, page_request: PageRequest) -> PageResponse:
        """POST a request (`scheduler.plan.wire`)."""
        if page_request.method != "POST":
            return text("wanted POST with a request as JSON\n", 405)
        try:
            requested = namespaces_of(pods_named(page_request.body))
        except PlanError as error:
            return text(f"{error}\n", 422)
        return replace(await self._planned(page_request.body), requested_namespaces=requested)

    async def _planned(self, body: bytes) -> PageResponse:
        scheduler = self._scheduler
        async with self._turn:
            await self._yield_control()
            try:
                decoding = decode_request(body, scheduler.engine.columns, scheduler.pending_pods)
                request = await run_in_slices(decoding, NoChanges(), self._clock.now_s, self._yield_control)
                await self._yield_control()
                result = await self._plan(request)
                await self._yield_control()
            except PlanError as error:
                return text(f"{error}\n", 422)
            except OutdatedPlan as error:
                return text(f"the cluster changes faster than the plan: {error}; try again\n", 503)
        return PageResponse(msgspec.json.encode(result), content_type="application/json")

    async def _fits_page(self, page_request: PageRequest) -> PageResponse:
        """How many more pods of each type of the cluster fit on a node."""
        name = page_request.first("node")
        fits: list[dict[str, object]] = []
        async with self._turn:
            await self._yield_control()
            if name not in self._scheduler.engine.columns.row_of:
                return text(f"node: there is no node {name!r}\n", 404)
            for pod_type in pod_types(self._scheduler, name):
                try:
                    answer = (await self._plan(pod_type.request)).capacity
                except (PlanError, OutdatedPlan):
                    continue  # the cluster changes too quickly: the next request finds out
                assert answer is not None, "a capacity plan has a capacity"
                # All other nodes reject a pod that is pinned to this one: the rarest reason is that of this node.
                reason = min(answer.reasons, key=lambda reason: answer.reasons[reason], default="")
                fits.append(
                    {
                        "type": pod_type.title,
                        "pods": pod_type.pods,
                        **pod_type.requests,
                        "fits": answer.groups,
                        "reason": reason,
                    }
                )
        return as_json({"node": name, "types": fits})

    async def _plan(self, request: PlanRequest) -> PlanResult:
        return await self._planner.plan_in_slices(request, self._clock.now_s, self._yield_control)

    async def _yield_control(self) -> None:
        await self._clock.wait(0)
        while self._scheduler.event_buffer.is_held:  # a decision waits for extenders, and needs the columns as they are
            await self._clock.wait(PLAN_RETRY_S)
