"""The check of a live run: compares the store with the expected outcome of each pod.

Input: the store after a run, the created pods, and what the observer saw. Output: problems as sentences; none if
everything is right.

 1. The stored JSON counts. Each pod is bound exactly once, rejected with a message, or gated, as its group demands; its
    condition and its event exist; no node is overcommitted.
 2. The expectations of the workload are checked on a second engine, which was filled from the store and decided
    nothing.
 3. Finally the scheduler: its columns must equal those of that engine, and its queue must hold exactly the pods that
    wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from bench.expectations import Evidence, Expectation, problems
from bench.live_cluster import STATE_OF, LiveCluster, PodToCreate
from mooring.api.decode import decode_as
from mooring.api.kinds import EVENT, NODE, POD, kind_of_view
from mooring.api.quantity import NANO, quantity_nano
from mooring.api.views.meta import ApiObject, RawQuantity
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.client.interface import Client
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_handlers import WATCHED
from mooring.scheduler.scheduler import Scheduler

COUNTED = ("cpu", "memory", "pods")


class Regarding(msgspec.Struct):
    uid: str = ""


class Event(msgspec.Struct):
    """What the check reads of an event."""

    regarding: Regarding
    reason: str = ""


class StoredState(NamedTuple):
    """Everything that the store holds in the end."""

    pods: Mapping[str, Pod]
    """By their keys."""
    nodes: Sequence[Node]
    events: frozenset[tuple[str, str]]
    """Which events there are: the uid of the pod and the reason."""


async def check(cluster: LiveCluster, pods: Sequence[PodToCreate], expectations: Sequence[Expectation]) -> list[str]:
    """Everything that is not as it must be."""
    stored = await _read(cluster.client)
    fresh = await _engine_of_the_store(cluster.client)
    return [
        *_pod_problems(stored, pods, cluster.observer.bindings),
        *_section_problems(stored),
        *problems(expectations, _evidence(fresh, stored, pods)),
        *_scheduler_problems(cluster.scheduler, fresh, stored, pods),
    ]


async def _read(client: Client) -> StoredState:
    views = [decode_as(Pod, raw) for raw in (await client.list(POD)).items]
    events = [msgspec.json.decode(raw, type=Event) for raw in (await client.list(EVENT)).items]
    return StoredState(
        pods={POD.key(view.metadata.namespace, view.metadata.name): view for view in views},
        nodes=[decode_as(Node, raw) for raw in (await client.list(NODE)).items],
        events=frozenset((event.regarding.uid, event.reason) for event in events),
    )


async def _engine_of_the_store(client: Client) -> Engine:
    """An engine that knows what the store holds, and has decided nothing of it."""
    engine = Engine(load_configuration(None), entropy=Entropy(1))
    views: tuple[type[ApiObject], ...] = (Node, *WATCHED, Pod)
    for view in views:
        for raw in (await client.list(kind_of_view(view))).items:
            engine.put(decode_as(view, raw))
    return engine


# ------------------------------------------------------------------------------------------- what came


def _pod_problems(stored: StoredState, pods: Sequence[PodToCreate], bindings: Mapping[str, int]) -> Iterable[str]:
    """Whether each pod that came is in the state that its group names, and whether its condition and event say so."""
    problems: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        view = stored.pods.get(pod.key)
        problem = "are gone" if view is None else _problem(view, pod, bindings.get(pod.key, 0), stored.events)
        if problem is not None:
            problems[problem].append(pod.key)
    for problem, keys in problems.items():
        yield f"{len(keys)} pods {problem}, such as {keys[0]}"


def _problem(view: Pod, pod: PodToCreate, binding_count: int, events: frozenset[tuple[str, str]]) -> str | None:
    uid = view.metadata.uid
    conditions = {(condition.type, condition.status, condition.reason) for condition in view.status.conditions}
    if pod.outcome == "placed":
        if not view.spec.node_name:
            return "have no node"
        if binding_count != 1:
            return f"were bound {binding_count} times"
        if ("PodScheduled", "True", "") not in conditions:
            return "have a node and no condition PodScheduled that says so"
        return None if (uid, "Scheduled") in events else "have a node and no event Scheduled"
    if view.spec.node_name:
        return f"have a node and should be {pod.outcome}"
    if pod.outcome == "refused":
        if ("PodScheduled", "False", "Unschedulable") not in conditions:
            return "were refused and have no condition that says so"
        return None if (uid, "FailedScheduling") in events else "were refused and have no event FailedScheduling"
    return "are gated and were tried" if (uid, "FailedScheduling") in events else None


def _section_problems(stored: StoredState) -> Iterable[str]:
    """Whether a node gave more than it has, added up from the stored JSON."""
    used: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTED, 0))
    for pod in stored.pods.values():
        if pod.spec.node_name:
            on_node = used[pod.spec.node_name]
            on_node["pods"] += NANO
            for container in pod.spec.containers:  # no template has init containers or overhead
                for name in ("cpu", "memory"):
                    on_node[name] += _amount(container.resources.requests, name)
    crowded = [
        node.metadata.name
        for node in stored.nodes
        if any(used[node.metadata.name][name] > _amount(node.status.allocatable, name) for name in COUNTED)
    ]
    if crowded:
        yield f"{len(crowded)} nodes hold more than they have according to the store, such as {crowded[0]}"


def _amount(quantities: Mapping[str, RawQuantity], name: str) -> int:
    return quantity_nano(quantities.get(name, 0))


def _evidence(fresh: Engine, stored: StoredState, pods: Sequence[PodToCreate]) -> Evidence:
    records: list[PodInfo] = []
    messages: list[str] = []
    for pod in pods:
        view = stored.pods.get(pod.key)
        if view is None:
            continue
        record = fresh.columns.pods.get(view.metadata.uid)
        if record is not None:
            record.view = view  # the engine drops the view of a placed pod; the expectations read it
            records.append(record)
        messages += [condition.message for condition in view.status.conditions if condition.reason == "Unschedulable"]
    return Evidence(fresh, records, messages, (), ())


# --------------------------------------------------------------------------------- what the scheduler believes


def _scheduler_problems(
    scheduler: Scheduler, fresh: Engine, stored: StoredState, pods: Sequence[PodToCreate]
) -> Iterable[str]:
    believed, true = _sums(scheduler.engine), _sums(fresh)
    wrong = [name for name in true if believed.get(name) != true[name]]
    if wrong or len(believed) != len(true):
        yield f"the scheduler's columns differ from the store on {len(wrong)} nodes, such as {wrong[:1]}"
    if len(scheduler.engine.columns.pods) != len(fresh.columns.pods):
        yield f"the scheduler counts {len(scheduler.engine.columns.pods)} placed pods, not {len(fresh.columns.pods)}"
    scheduler.queue.check()
    waiting = {
        stored.pods[pod.key].metadata.uid: STATE_OF[pod.outcome]
        for pod in pods
        if STATE_OF[pod.outcome] is not None and pod.key in stored.pods
    }
    queued = {entry.pod.uid: entry.state for entry in scheduler.queue.entries()}
    lost = [uid for uid, section in waiting.items() if queued.get(uid) is not section]
    if lost:
        yield f"{len(lost)} pods wait in another section of the queue than expected, or in none, such as {lost[0]}"
    strangers = [uid for uid in queued if uid not in waiting]
    if strangers:
        yield f"{len(strangers)} pods are left in the queue, such as {strangers[0]}"


def _sums(engine: Engine) -> dict[str, dict[str, int]]:
    """Per node: what its pods use of each resource, and nothing of what they do not use."""
    columns = engine.columns
    names = columns.resources.names
    return {
        node: {name: amount for name, amount in zip(names, columns.resources.used[:, row].tolist()) if amount}
        for node, row in columns.row_of.items()
    }
