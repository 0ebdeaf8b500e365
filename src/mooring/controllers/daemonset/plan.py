"""What a DaemonSet needs next: a pod where one is missing, none where none should be, new ones for old. Decides only.

Comes in   a DaemonSet, nodes with their `Fit`, its pods by node, the hash of the newest revision, the time
Goes out   a `Plan`: nodes that get a pod, pods that are deleted, what is said about it; the counts of the status

 1. A node has one pod, or two while a surging update waits for the new one to be available.
 2. A failed pod is deleted and made anew, with a backoff for each node: a kubelet that rejects it would do so for ever.
 3. An update deletes no available pod if that makes more than maxUnavailable unavailable; pods that are not available
    are replaced without asking. With maxSurge it deletes none before the new one on the node is available.
 4. Nodes are looked at in the order of the informer, so that a run can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mooring.api.document import Document
from mooring.api.views.daemon_sets import DaemonSet, DaemonSetStatus
from mooring.api.views.pod import Pod
from mooring.client.events.recorder import EventType
from mooring.controllers.daemonset.nodes import REVISION_HASH, TEMPLATE_GENERATION, Fit, template_generation
from mooring.controllers.pods import is_available, is_ready
from mooring.controllers.replicas import scaled_value
from mooring.kit.backoff import Backoff

FAILED_BACKOFF = Backoff(initial_s=1.0, max_s=900.0)
"""How long a node waits for the deletion of its next failed pod."""
FORGOTTEN_AFTER_S = 2 * FAILED_BACKOFF.max_s


@dataclass(slots=True)
class Plan:
    nodes: list[str] = field(default_factory=list)
    """They get a pod."""
    to_delete: list[Pod] = field(default_factory=list)
    events: list[tuple[EventType, str, str]] = field(default_factory=list)
    """Type, reason and message of events."""
    failed_on: list[str] = field(default_factory=list)
    """Nodes whose failed pod is deleted now: the next there will have to wait longer."""
    later_s: float | None = None
    """After how long a failed pod may be deleted that has to wait now."""


@dataclass(frozen=True, slots=True)
class Target:
    """What all questions about one DaemonSet start from."""

    daemon_set: DaemonSet
    fits: Mapping[str, Fit]
    """By node name: all nodes that there are."""
    hashed: str
    now_s: float

    def is_updated(self, pod: Pod) -> bool:
        labels = pod.metadata.labels
        if self.hashed and labels.get(REVISION_HASH) == self.hashed:
            return True
        generation = template_generation(self.daemon_set)
        return generation is not None and labels.get(TEMPLATE_GENERATION) == generation

    def is_available(self, pod: Pod) -> bool:
        return is_available(pod, self.daemon_set.spec.min_ready_seconds, self.now_s)


def plan_nodes(target: Target, by_node: Mapping[str, Sequence[Pod]], backoff_s: Callable[[str], float]) -> Plan:
    """One pod on each node that should have one. `backoff_s` says how long a failed pod of a node has to wait."""
    plan = Plan()
    does_surge = surge_count(target.daemon_set, 1) > 0
    for name, fit in target.fits.items():
        pods = by_node.get(name)
        if fit.should_run and pods is None:
            plan.nodes.append(name)
        elif fit.may_stay:
            running = _delete_finished(plan, name, pods or (), backoff_s)
            if does_surge:
                _delete_surplus_surge_pods(plan, target, name, running)
            elif len(running) > 1:
                plan.to_delete += sorted(running, key=_oldest_first)[1:]
        else:
            plan.to_delete += [pod for pod in pods or () if pod.metadata.deletion_timestamp is None]
    # A pod for a node that never came is on no node, so nobody else would collect it.
    for name, pods in by_node.items():
        if name not in target.fits:
            plan.to_delete += [pod for pod in pods if not pod.spec.node_name]
    return plan


def plan_update(target: Target, by_node: Mapping[str, Sequence[Pod]]) -> Plan:
    """The next step of a rolling update."""
    desired = [name for name, fit in target.fits.items() if fit.should_run]
    everywhere = {**by_node, **{name: by_node.get(name, ()) for name in desired}}
    surge = surge_count(target.daemon_set, len(desired))
    unavailable_max = unavailable_count(target.daemon_set, len(desired))
    if desired and not unavailable_max and not surge:
        unavailable_max = 1
    if surge:
        return _plan_surging(target, everywhere, surge, len(desired))
    return _plan_replacing(target, everywhere, unavailable_max)


def count_status(target: Target, by_node: Mapping[str, Sequence[Pod]]) -> DaemonSetStatus:
    """The counts alone."""
    desired = current = misscheduled = ready = updated = available = 0
    for name, fit in target.fits.items():
        pods = by_node.get(name)
        if not fit.should_run:
            misscheduled += bool(pods)
            continue
        desired += 1
        if not pods:
            continue
        current += 1
        pod = min(pods, key=_oldest_first)
        if is_ready(pod):
            ready += 1
            available += target.is_available(pod)
        updated += target.is_updated(pod)
    return DaemonSetStatus(
        current_number_scheduled=current,
        number_misscheduled=misscheduled,
        desired_number_scheduled=desired,
        number_ready=ready,
        updated_number_scheduled=updated,
        number_available=available,
        number_unavailable=desired - available,
    )


def surge_count(daemon_set: DaemonSet, desired: int) -> int:
    strategy = daemon_set.spec.update_strategy
    if strategy.type != "RollingUpdate" or strategy.rolling_update is None:
        return 0
    return scaled_value(strategy.rolling_update.max_surge, desired, is_rounded_up=True)


def unavailable_count(daemon_set: DaemonSet, desired: int) -> int:
    strategy = daemon_set.spec.update_strategy
    if strategy.type != "RollingUpdate" or strategy.rolling_update is None:
        return 0
    return scaled_value(strategy.rolling_update.max_unavailable, desired, is_rounded_up=True)


# --- one node ---------------------------------------------------------------------------------------------------


def _delete_finished(plan: Plan, node_name: str, pods: Sequence[Pod], backoff_s: Callable[[str], float]) -> list[Pod]:
    """The pods that are neither going nor ended; those that have ended are to be deleted."""
    running = []
    for pod in pods:
        if pod.metadata.deletion_timestamp is not None:
            continue
        described = f"daemon pod {pod.metadata.namespace}/{pod.metadata.name} on node {node_name}"
        if pod.status.phase == "Failed":
            wait_s = backoff_s(node_name) if node_name not in plan.failed_on else FAILED_BACKOFF.initial_s
            if wait_s > 0:
                plan.later_s = wait_s if plan.later_s is None else min(plan.later_s, wait_s)
                continue
            plan.failed_on.append(node_name)
            plan.events.append(("Warning", "FailedDaemonPod", f"Found failed {described}, will try to kill it"))
            plan.to_delete.append(pod)
        elif pod.status.phase == "Succeeded":
            plan.events.append(("Normal", "SucceededDaemonPod", f"Found succeeded {described}, will try to delete it"))
            plan.to_delete.append(pod)
        else:
            running.append(pod)
    return running


def _delete_surplus_surge_pods(plan: Plan, target: Target, node_name: str, running: list[Pod]) -> None:
    """Two may be there: an old pod that is ready, and a new one that is not available yet."""
    if not running and target.fits[node_name].should_run:
        plan.nodes.append(node_name)
    if len(running) <= 1:
        return
    new: Pod | None = None
    old: Pod | None = None
    for pod in sorted(running, key=_oldest_first):
        is_new = pod.metadata.labels.get(REVISION_HASH) == target.hashed
        if is_new and new is None:
            new = pod
        elif not is_new and old is None:
            old = pod
        else:
            plan.to_delete.append(pod)
    if new is not None and old is not None and (not is_ready(old) or target.is_available(new)):
        plan.to_delete.append(old)


def _oldest_first(pod: Pod) -> tuple[bool, str, str]:
    # Stamps of the API are of one form, so that their text has the order of their time.
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


# --- updating ---------------------------------------------------------------------------------------------------


def _plan_replacing(target: Target, everywhere: Mapping[str, Sequence[Pod]], unavailable_max: int) -> Plan:
    unavailable = 0
    unavailable_old: list[Pod] = []
    candidates: list[Pod] = []
    for pods in everywhere.values():
        pair = _new_and_old(target, pods)
        if pair is None:
            unavailable += 1
            continue
        new, old = pair
        if (new is None) == (old is None):
            unavailable += 1  # somebody is missing or too many: `plan_nodes` sees to it
        elif old is None:
            assert new is not None
            unavailable += not target.is_available(new)
        elif not target.is_available(old):
            unavailable_old.append(old)
            unavailable += 1
        elif unavailable < unavailable_max:
            candidates.append(old)
    allowed = max(0, unavailable_max - unavailable)
    return Plan(to_delete=[*unavailable_old, *candidates[:allowed]])


def _plan_surging(target: Target, everywhere: Mapping[str, Sequence[Pod]], surge_max: int, desired: int) -> Plan:
    surging = available = 0
    to_delete: list[Pod] = []
    out_of_place: list[Pod] = []
    unavailable_old: list[str] = []
    candidates: list[str] = []
    for name, pods in everywhere.items():
        pair = _new_and_old(target, pods)
        if pair is None:
            surging += 1
            continue
        new, old = pair
        shown = old if old is not None else new
        available += shown is not None and target.is_available(shown)
        if old is None:
            continue
        fit = target.fits.get(name)
        should_run = fit is not None and fit.should_run
        if new is not None:
            if target.is_available(new):
                to_delete.append(old)
            else:
                surging += 1
        elif not target.is_available(old):
            if should_run:
                unavailable_old.append(name)
            else:
                to_delete.append(old)
        elif not should_run:
            out_of_place.append(old)
        elif surging < surge_max:
            candidates.append(name)
    to_delete += out_of_place[: max(0, available - desired)]
    allowed = max(0, surge_max - surging)
    return Plan(nodes=[*unavailable_old, *candidates[:allowed]], to_delete=to_delete)


def _new_and_old(target: Target, pods: Sequence[Pod]) -> tuple[Pod | None, Pod | None] | None:
    """The pod of the newest template and the one of an older; None if there are two of a sort."""
    new: Pod | None = None
    old: Pod | None = None
    for pod in pods:
        if pod.metadata.deletion_timestamp is not None:
            continue
        if target.is_updated(pod):
            if new is not None:
                return None
            new = pod
        else:
            if old is not None:
                return None
            old = pod
    return new, old


class FailedPodsBackoff:
    def __init__(self) -> None:
        self._by_key: dict[str, tuple[int, float]] = {}  # failures and the last one's time, the oldest first

    def wait_s(self, key: str, now_s: float) -> float:
        """How long a wait is in force for the key; 0 if none is."""
        failures, last_s = self._by_key.get(key, (0, 0.0))
        wait_s = FAILED_BACKOFF.delay_s(failures)
        return wait_s if failures and now_s - last_s < wait_s else 0.0

    def note(self, key: str, now_s: float) -> None:
        """A failed pod is being deleted."""
        while self._by_key:
            oldest, (_, last_s) = next(iter(self._by_key.items()))
            if now_s - last_s <= FORGOTTEN_AFTER_S:
                break
            del self._by_key[oldest]
        failures, _ = self._by_key.pop(key, (0, 0.0))
        self._by_key[key] = (failures + 1, now_s)


_COUNTS = {
    "current_number_scheduled": "currentNumberScheduled",
    "number_misscheduled": "numberMisscheduled",
    "desired_number_scheduled": "desiredNumberScheduled",
    "number_ready": "numberReady",
    "updated_number_scheduled": "updatedNumberScheduled",
    "number_available": "numberAvailable",
    "number_unavailable": "numberUnavailable",
}


_COUNTS_SHOWN_AS_ZERO = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)


def is_same_status(wanted: DaemonSet, counts: DaemonSetStatus) -> bool:
    return wanted.status.observed_generation >= wanted.metadata.generation and all(
        getattr(wanted.status, name) == getattr(counts, name) for name in _COUNTS
    )


def status_document(status: Document, counts: DaemonSetStatus) -> Document:
    """The status with these counts, and everything else that it has."""
    document = dict(status)
    for name, sent_as in _COUNTS.items():
        count = getattr(counts, name)
        if count or sent_as in _COUNTS_SHOWN_AS_ZERO:
            document[sent_as] = count
        else:
            document.pop(sent_as, None)
    return document
