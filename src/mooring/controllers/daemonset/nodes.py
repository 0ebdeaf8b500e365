"""The nodes on which a DaemonSet runs, and its pod for one node. No I/O.

Inputs: the template of a DaemonSet, nodes. Outputs: a `NodeFit` for each node; pods.

Only node affinity and taints count. A full node gets its pod, too; the scheduler may preempt others for it.

1. Pods of a DaemonSet tolerate not-ready, unreachable, pressure and unschedulable taints: they run until the node
   is gone.
2. A NoSchedule taint lets existing pods stay.
3. Fits are cached until the labels or taints of the node, or the DaemonSet, change. Heartbeats change neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.nodeselector import NAME_FIELD, RequiredNodeAffinity, required_node_affinity
from mooring.api.tolerations import NO_EXECUTE, find_untolerated_taint, is_tolerated
from mooring.api.views.node import Node, Taint
from mooring.api.views.pod import Pod, Toleration
from mooring.api.views.workloads import DaemonSet
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
from mooring.controllers.documents import document_of
from mooring.controllers.pod_control import pod_of_template

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
    for each in daemon_tolerations(bool(spec.get("hostNetwork"))):
        wanted = {"key": each.key, "operator": each.operator, "effect": each.effect}
        alike = [
            index
            for index, known in enumerate(tolerations)
            if all(known.get(part, "") == wanted.get(part, "") for part in ("key", "operator", "effect", "value"))
        ]
        for index in alike:
            tolerations[index] = wanted
        if not alike:
            tolerations.append(wanted)
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
        for field in term.match_fields:
            if field.key == NAME_FIELD and field.operator == "In":
                return field.values[0] if len(field.values) == 1 else None
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


def daemon_pod(wanted: DaemonSet, hashed: str) -> Document:
    """A pod of the template, without its node."""
    pod = pod_of_template(document_of(wanted)["spec"].get("template") or {}, wanted)
    labels = {**(pod["metadata"].get("labels") or {})}
    generation = template_generation(wanted)
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
