"""The nodes on which a DaemonSet runs, the pods to create and delete there, and its status. No I/O.

Inputs: a DaemonSet, nodes, its pods by node, the hash of the newest revision, the time. Outputs: a `NodeFit` for each
node; a `DaemonSetPlan`; the counts of the status.

Nodes: only node affinity and taints count. A full node gets its pod, too; the scheduler may preempt others for it.

1. Pods of a DaemonSet tolerate not-ready, unreachable, pressure and unschedulable taints: they run until the node
   is gone.
2. A NoSchedule taint lets existing pods stay.
3. Fits are cached until the labels or taints of the node, or the DaemonSet, change. Heartbeats change neither.

Pods:

4. A node has one pod, or two while a surging update waits for the new one to be available.
5. A failed pod is deleted and replaced. The first one of a node is deleted at once, the next after 1 s, 2 s, … up
   to 15 minutes: a kubelet that rejects the pod would do so forever. A node without a failure for twice that long
   starts again.
6. An update deletes no available pod if more than maxUnavailable would be unavailable. Unavailable pods are
   replaced at once. With maxSurge no old pod is deleted before the new one of the node is available.
7. Nodes are processed in the order of the informer, so that a run can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from mooring.api.document import Document
from mooring.api.nodeselector import NAME_FIELD, RequiredNodeAffinity, required_node_affinity
from mooring.api.tolerations import NO_EXECUTE, find_untolerated_taint, is_tolerated
from mooring.api.views.node import Node, Taint
from mooring.api.views.pod import Pod, Toleration
from mooring.api.views.workloads import DaemonSet, DaemonSetStatus
from mooring.api.well_known import (
    CONTROLLER_REVISION_HASH_LABEL,
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
    TEMPLATE_GENERATION_ANNOTATION,
    TEMPLATE_GENERATION_LABEL,
)
from mooring.client.events import EventType
from mooring.controllers.documents import document_of, view_document
from mooring.controllers.pod_control import pod_of_template
from mooring.controllers.pods import is_available, is_ready, scaled_value
from mooring.kit.backoff import Backoff

_INT64 = range(-(2**63), 2**63)
_ALWAYS_TOLERATED = (
    Toleration(key=TAINT_NOT_READY, operator="Exists", effect="NoExecute"),
    Toleration(key=TAINT_UNREACHABLE, operator="Exists", effect="NoExecute"),
    Toleration(key=TAINT_DISK_PRESSURE, operator="Exists", effect="NoSchedule"),
    Toleration(key=TAINT_MEMORY_PRESSURE, operator="Exists", effect="NoSchedule"),
    Toleration(key=TAINT_PID_PRESSURE, operator="Exists", effect="NoSchedule"),
    Toleration(key=TAINT_UNSCHEDULABLE, operator="Exists", effect="NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = Toleration(key=TAINT_NETWORK_UNAVAILABLE, operator="Exists", effect="NoSchedule")


class NodeFit(NamedTuple):
    """Whether a DaemonSet runs on a node."""

    should_run: bool
    """Whether the node needs a pod."""
    may_stay: bool
    """Whether a pod on the node may stay."""


class _NodeRequirements:
    """The node requirements of one generation of a DaemonSet, and the cached fits."""

    def __init__(self, daemon_set: DaemonSet) -> None:
        spec = daemon_set.spec.template.spec
        self.generation = daemon_set.metadata.generation
        self.node_name = spec.node_name
        self.affinity: RequiredNodeAffinity = required_node_affinity(Pod(spec=spec))
        self.tolerations = (*spec.tolerations, *daemon_tolerations(spec.host_network))
        self.fits: dict[str, tuple[Mapping[str, str], tuple[Taint, ...], NodeFit]] = {}


class FitCache:
    """Fits for all DaemonSets and nodes."""

    def __init__(self) -> None:
        self._requirements: dict[str, _NodeRequirements] = {}

    def fit(self, daemon_set: DaemonSet, node: Node) -> NodeFit:
        uid = daemon_set.metadata.uid
        requirements = self._requirements.get(uid)
        if requirements is None or requirements.generation != daemon_set.metadata.generation:
            requirements = self._requirements[uid] = _NodeRequirements(daemon_set)
        labels, taints = node.metadata.labels, node.spec.taints
        known = requirements.fits.get(node.metadata.name)
        if known is not None and known[0] == labels and known[1] == taints:
            return known[2]
        fit = _evaluate(requirements, node)
        requirements.fits[node.metadata.name] = (labels, taints, fit)
        return fit

    def forget_daemon_set(self, uid: str) -> None:
        self._requirements.pop(uid, None)

    def forget_node(self, name: str) -> None:
        for requirements in self._requirements.values():
            requirements.fits.pop(name, None)


def daemon_tolerations(is_on_host_network: bool) -> tuple[Toleration, ...]:
    return (*_ALWAYS_TOLERATED, _TOLERATED_ON_HOST_NETWORK) if is_on_host_network else _ALWAYS_TOLERATED


def with_daemon_tolerations(spec: Document) -> Document:
    """The pod spec with the tolerations of a DaemonSet pod. Equal ones with a time limit are replaced."""
    tolerations: list[Document] = [*(spec.get("tolerations") or [])]
    for toleration in daemon_tolerations(bool(spec.get("hostNetwork"))):
        expected = {"key": toleration.key, "operator": toleration.operator, "effect": toleration.effect}
        alike = [
            index
            for index, known in enumerate(tolerations)
            if all(known.get(part, "") == expected.get(part, "") for part in ("key", "operator", "effect", "value"))
        ]
        for index in alike:
            tolerations[index] = expected
        if not alike:
            tolerations.append(expected)
    return {**spec, "tolerations": tolerations}


def pin_to_node(spec: Document, node_name: str) -> Document:
    """The pod spec for one node. The node satisfies the required node affinity already, so it is replaced."""
    term = {"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node_name]}]}
    affinity: Document = {**(spec.get("affinity") or {})}
    node_affinity: Document = {**(affinity.get("nodeAffinity") or {})}
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}


def target_node(pod: Pod) -> str | None:
    """The node that a pod is bound to or meant for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for requirement in term.match_fields:
            if requirement.key == NAME_FIELD and requirement.operator == "In":
                return requirement.values[0] if len(requirement.values) == 1 else None
    return None


def _evaluate(requirements: _NodeRequirements, node: Node) -> NodeFit:
    name = node.metadata.name
    if requirements.node_name not in ("", name) or not requirements.affinity.matches(node.metadata.labels, name):
        return NodeFit(should_run=False, may_stay=False)
    if find_untolerated_taint(node.spec.taints, requirements.tolerations) is None:
        return NodeFit(should_run=True, may_stay=True)
    is_evicted = any(
        taint.effect == NO_EXECUTE and not is_tolerated(taint, requirements.tolerations) for taint in node.spec.taints
    )
    return NodeFit(should_run=False, may_stay=not is_evicted)


def daemon_pod(daemon_set: DaemonSet, hashed: str) -> Document:
    """A pod of the template, without its node."""
    pod = pod_of_template(document_of(daemon_set)["spec"].get("template") or {}, daemon_set)
    labels = {**(pod["metadata"].get("labels") or {})}
    generation = template_generation(daemon_set)
    if generation is not None:
        labels[TEMPLATE_GENERATION_LABEL] = generation
    if hashed:
        labels[CONTROLLER_REVISION_HASH_LABEL] = hashed
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": with_daemon_tolerations(pod["spec"])}


def template_generation(daemon_set: DaemonSet) -> str | None:
    """The template generation of the old extensions API, if it is a number."""
    text = daemon_set.metadata.annotations.get(TEMPLATE_GENERATION_ANNOTATION)
    try:
        number = int(text) if text is not None else None
    except ValueError:
        return None
    return str(number) if number is not None and number in _INT64 else None


# --- the plan -------------------------------------------------------------------------------------------------


FAILED_BACKOFF = Backoff(initial_s=1.0, max_s=900.0)
"""How long a node waits until its next failed pod is deleted."""
FORGOTTEN_AFTER_S = 2 * FAILED_BACKOFF.max_s


@dataclass(slots=True)
class DaemonSetPlan:
    """Pods to create and delete in one sync."""

    nodes: list[str] = field(default_factory=list)
    """Nodes that get a pod."""
    to_delete: list[Pod] = field(default_factory=list)
    events: list[tuple[EventType, str, str]] = field(default_factory=list)
    """Type, reason and message."""
    failed_on: list[str] = field(default_factory=list)
    """Nodes whose failed pod is deleted now. The next one waits longer."""
    later_s: float | None = None
    """Seconds until the next failed pod may be deleted."""


@dataclass(frozen=True, slots=True)
class DaemonSetSync:
    """Inputs of one sync."""

    daemon_set: DaemonSet
    fits: Mapping[str, NodeFit]
    """Fits of all nodes, by name."""
    hashed: str
    now_s: float

    def is_updated(self, pod: Pod) -> bool:
        labels = pod.metadata.labels
        if self.hashed and labels.get(CONTROLLER_REVISION_HASH_LABEL) == self.hashed:
            return True
        generation = template_generation(self.daemon_set)
        return generation is not None and labels.get(TEMPLATE_GENERATION_LABEL) == generation

    def is_available(self, pod: Pod) -> bool:
        return is_available(pod, self.daemon_set.spec.min_ready_seconds, self.now_s)


def plan_nodes(
    state: DaemonSetSync, by_node: Mapping[str, Sequence[Pod]], backoff_s: Callable[[str], float]
) -> DaemonSetPlan:
    """One pod on each node that needs one. `backoff_s` gives how long the failed pod of a node has to wait."""
    plan = DaemonSetPlan()
    does_surge = surge_and_unavailable(state.daemon_set, 1)[0] > 0
    for name, fit in state.fits.items():
        pods = by_node.get(name)
        if fit.should_run and pods is None:
            plan.nodes.append(name)
        elif fit.may_stay:
            running = _delete_finished(plan, name, pods or (), backoff_s)
            if does_surge:
                _delete_surplus_surge_pods(plan, state, name, running)
            elif len(running) > 1:
                plan.to_delete += sorted(running, key=_oldest_first)[1:]
        else:
            plan.to_delete += [pod for pod in pods or () if pod.metadata.deletion_timestamp is None]
    # A pod for a node that never existed is on no node, so the pod garbage collector does not delete it.
    for name, pods in by_node.items():
        if name not in state.fits:
            plan.to_delete += [pod for pod in pods if not pod.spec.node_name]
    return plan


def plan_update(state: DaemonSetSync, by_node: Mapping[str, Sequence[Pod]]) -> DaemonSetPlan:
    """The next step of a rolling update."""
    desired = [name for name, fit in state.fits.items() if fit.should_run]
    everywhere = {**by_node, **{name: by_node.get(name, ()) for name in desired}}
    surge, unavailable_max = surge_and_unavailable(state.daemon_set, len(desired))
    if surge:
        return _plan_surging(state, everywhere, surge, len(desired))
    return _plan_replacing(state, everywhere, max(unavailable_max, 1) if desired else unavailable_max)


def count_status(state: DaemonSetSync, by_node: Mapping[str, Sequence[Pod]]) -> DaemonSetStatus:
    """The counts of the status."""
    desired = current = misscheduled = ready = updated = available = 0
    for name, fit in state.fits.items():
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
            available += state.is_available(pod)
        updated += state.is_updated(pod)
    return DaemonSetStatus(
        current_number_scheduled=current,
        number_misscheduled=misscheduled,
        desired_number_scheduled=desired,
        number_ready=ready,
        updated_number_scheduled=updated,
        number_available=available,
        number_unavailable=desired - available,
    )


def surge_and_unavailable(daemon_set: DaemonSet, desired: int) -> tuple[int, int]:
    """How many nodes may have two pods during an update, and how many none."""
    strategy = daemon_set.spec.update_strategy
    limits = strategy.rolling_update
    if strategy.type != "RollingUpdate" or limits is None:
        return 0, 0
    surge = scaled_value(limits.max_surge, desired, is_rounded_up=True)
    return surge, scaled_value(limits.max_unavailable, desired, is_rounded_up=True)


# --- one node ------------------------------------------------------------------------------------------------


def _delete_finished(
    plan: DaemonSetPlan, node_name: str, pods: Sequence[Pod], backoff_s: Callable[[str], float]
) -> list[Pod]:
    """Plan the deletion of finished pods. Returns the running ones."""
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


def _delete_surplus_surge_pods(plan: DaemonSetPlan, state: DaemonSetSync, node_name: str, running: list[Pod]) -> None:
    """A node may have two pods: an old one that is ready, and a new one that is not available yet."""
    if not running and state.fits[node_name].should_run:
        plan.nodes.append(node_name)
    if len(running) <= 1:
        return
    new: Pod | None = None
    old: Pod | None = None
    for pod in sorted(running, key=_oldest_first):
        is_new = pod.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL) == state.hashed
        if is_new and new is None:
            new = pod
        elif not is_new and old is None:
            old = pod
        else:
            plan.to_delete.append(pod)
    if new is not None and old is not None and (not is_ready(old) or state.is_available(new)):
        plan.to_delete.append(old)


def _oldest_first(pod: Pod) -> tuple[bool, str, str]:
    # Timestamps of the API have one format, so their text sorts by time.
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


# --- updating ------------------------------------------------------------------------------------------------


def _plan_replacing(
    state: DaemonSetSync, everywhere: Mapping[str, Sequence[Pod]], unavailable_max: int
) -> DaemonSetPlan:
    unavailable = 0
    unavailable_old: list[Pod] = []
    candidates: list[Pod] = []
    for pods in everywhere.values():
        pair = _new_and_old(state, pods)
        if pair is None:
            unavailable += 1
            continue
        new, old = pair
        if (new is None) == (old is None):
            unavailable += 1  # a pod is missing or one too many: `plan_nodes` corrects that
        elif old is None:
            assert new is not None
            unavailable += not state.is_available(new)
        elif not state.is_available(old):
            unavailable_old.append(old)
            unavailable += 1
        elif unavailable < unavailable_max:
            candidates.append(old)
    allowed = max(0, unavailable_max - unavailable)
    return DaemonSetPlan(to_delete=[*unavailable_old, *candidates[:allowed]])


def _plan_surging(
    state: DaemonSetSync, everywhere: Mapping[str, Sequence[Pod]], surge_max: int, desired: int
) -> DaemonSetPlan:
    surging = available = 0
    to_delete: list[Pod] = []
    out_of_place: list[Pod] = []
    unavailable_old: list[str] = []
    candidates: list[str] = []
    for name, pods in everywhere.items():
        pair = _new_and_old(state, pods)
        if pair is None:
            surging += 1
            continue
        new, old = pair
        shown = old if old is not None else new
        available += shown is not None and state.is_available(shown)
        if old is None:
            continue
        fit = state.fits.get(name)
        should_run = fit is not None and fit.should_run
        if new is not None:
            if state.is_available(new):
                to_delete.append(old)
            else:
                surging += 1
        elif not state.is_available(old):
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
    return DaemonSetPlan(nodes=[*unavailable_old, *candidates[:allowed]], to_delete=to_delete)


def _new_and_old(state: DaemonSetSync, pods: Sequence[Pod]) -> tuple[Pod | None, Pod | None] | None:
    """The pod of the newest template and the pod of an older one. None if there are two of either."""
    new: Pod | None = None
    old: Pod | None = None
    for pod in pods:
        if pod.metadata.deletion_timestamp is not None:
            continue
        if state.is_updated(pod):
            if new is not None:
                return None
            new = pod
        else:
            if old is not None:
                return None
            old = pod
    return new, old


class FailedPodsBackoff:
    """Backoff of failed pods, by DaemonSet, generation and node."""

    def __init__(self) -> None:
        self._by_key: dict[str, tuple[int, float]] = {}  # number of failures and time of the last one, oldest first

    def wait_s(self, key: str, now_s: float) -> float:
        """How long the deletion has to wait. 0 if it may happen now."""
        failures, last_s = self._by_key.get(key, (0, 0.0))
        wait_s = FAILED_BACKOFF.delay_s(failures)
        return wait_s if failures and now_s - last_s < wait_s else 0.0

    def record(self, key: str, now_s: float) -> None:
        """Record that a failed pod is deleted."""
        while self._by_key:
            oldest, (_, last_s) = next(iter(self._by_key.items()))
            if now_s - last_s <= FORGOTTEN_AFTER_S:
                break
            del self._by_key[oldest]
        failures, _ = self._by_key.pop(key, (0, 0.0))
        self._by_key[key] = (failures + 1, now_s)


_REQUIRED_COUNTS = {
    "currentNumberScheduled": 0,
    "numberMisscheduled": 0,
    "desiredNumberScheduled": 0,
    "numberReady": 0,
}
_OPTIONAL_COUNTS = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")


def is_same_status(daemon_set: DaemonSet, counts: DaemonSetStatus) -> bool:
    known = daemon_set.status
    return known.observed_generation >= daemon_set.metadata.generation and known == replace(
        counts,
        observed_generation=known.observed_generation,
        collision_count=known.collision_count,
        conditions=known.conditions,
    )


def status_document(status: Document, counts: DaemonSetStatus) -> Document:
    """A status with new counts. Other fields stay."""
    others = {name: value for name, value in status.items() if name not in _OPTIONAL_COUNTS}
    return {**others, **_REQUIRED_COUNTS, **view_document(counts)}
