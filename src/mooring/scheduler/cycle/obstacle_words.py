"""Obstacles in words: what a refusal of each plugin means for whoever wants the pod to run there.

Comes in   a place (pod and node), a filter that refused it, its state and its bits
Goes out   `Obstacle`s; for plugins that nobody here knows, the refusal's own words

 1. All that a filter has against the node is told, even what the filter itself does not get to: all taints, all
    labels, all ports.
 2. What other pods have to do with it (spreading, affinity) is told next door, in `obstacle_neighbours`; what devices
    have, in `obstacle_devices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mooring.api.labels import Operator, Requirement
from mooring.api.nodeselector import NAME_FIELD, RequiredNodeAffinity, Term
from mooring.api.quantity import NANO, NANO_IN_MILLI, Format, Quantity
from mooring.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_huge_page_resource
from mooring.api.tolerations import HARD_EFFECTS, UNSCHEDULABLE_TAINT, is_tolerated
from mooring.api.views.node import Taint
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.cache.ports import ANY_ADDRESS, HostPort
from mooring.scheduler.cache.resources import PODS
from mooring.scheduler.cycle.obstacle import Kind, Obstacle, Place
from mooring.scheduler.cycle.obstacle_devices import device_obstacles
from mooring.scheduler.cycle.obstacle_neighbours import affinity_obstacles, spread_obstacles
from mooring.scheduler.framework.plugin import Filter
from mooring.scheduler.framework.status import Rejection, refusal_of
from mooring.scheduler.plugins.dynamic_resources import DynamicResources
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from mooring.scheduler.plugins.node_affinity import NodeAffinity
from mooring.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from mooring.scheduler.plugins.node_ports import NodePorts
from mooring.scheduler.plugins.node_resources_fit import NodeResourcesFit, Wanted
from mooring.scheduler.plugins.node_unschedulable import NodeUnschedulable
from mooring.scheduler.plugins.pod_topology_spread import PodTopologySpread
from mooring.scheduler.plugins.taint_toleration import TaintToleration

_KINDS: Mapping[type[Filter[Any]], Kind] = {
    NodeResourcesFit: Kind.RESOURCE,
    TaintToleration: Kind.TAINT,
    NodeUnschedulable: Kind.CORDON,
    NodeAffinity: Kind.NODE_LABEL,
    NodePorts: Kind.HOST_PORT,
    PodTopologySpread: Kind.SPREAD,
    InterPodAffinity: Kind.AFFINITY,
    DynamicResources: Kind.DEVICE,
    NodeDeclaredFeatures: Kind.FEATURE,
}
_BINARY_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def kind_of(plugin: Filter[Any]) -> Kind:
    """The sort of obstacle that a filter's refusals are."""
    known = _KINDS.get(type(plugin))
    if known is not None:
        return known
    return Kind.VOLUME if "Volume" in plugin.name else Kind.OTHER


def told_everywhere(plugin_name: str, rejection: Rejection) -> Obstacle:
    """What a PreFilter said: it holds for all nodes alike."""
    return Obstacle(plugin_name, Kind.VOLUME if "Volume" in plugin_name else Kind.OTHER, rejection.message)


def words_for(place: Place, plugin: Filter[Any], state: Any, bits: int) -> list[Obstacle]:
    """Everything that one filter has against one node."""
    match plugin:
        case NodeResourcesFit():
            found = _shortages(place, state)
        case TaintToleration():
            found = _taints(place)
            if _is_only_cordoned(place):
                return found
        case NodeUnschedulable():
            found = [_cordon(place)]
        case NodeAffinity():
            found = _labels(place, state)
        case NodePorts():
            found = _ports(place, state)
        case PodTopologySpread():
            found = spread_obstacles(place, state)
        case InterPodAffinity():
            found = affinity_obstacles(place, state)
        case DynamicResources():
            found = device_obstacles(place, state)
        case NodeDeclaredFeatures():
            found = [_feature(place, sorted(state))]
        case _:
            found = []
    return found or _as_refused(plugin, state, bits)


def _as_refused(plugin: Filter[Any], state: Any, bits: int) -> list[Obstacle]:
    """The refusal's own words, one obstacle for each reason."""
    refusal = refusal_of(plugin.name, bits, plugin.reasons(state))
    return [Obstacle(plugin.name, kind_of(plugin), reason.removeprefix("node(s) ")) for reason in refusal.reasons]


# --- resources --------------------------------------------------------------------------------------------------


def _shortages(place: Place, wanted: Wanted) -> list[Obstacle]:
    resources, row = place.columns.resources, place.row
    found = []
    slots_missing = int(resources.used[PODS, row]) + len(place.promised) + 1 - int(resources.allocatable[PODS, row])
    if slots_missing > 0:
        text = f"{slots_missing} more pod slot{'s' if slots_missing > 1 else ''}"
        found.append(Obstacle(NodeResourcesFit.name, Kind.POD_SLOT, text, {"missing": slots_missing}))
    for slot, amount in wanted.demands:
        offered, promised = int(resources.allocatable[slot, row]), _promised_of(place, slot)
        if not offered and slot in wanted.of_devices:
            continue
        missing = amount - (offered - int(resources.used[slot, row]) - sum(promised.values()))
        if missing > 0:
            found.append(_shortage(resources.names[slot], amount, missing, offered, promised))
    return found


def _shortage(name: str, amount: int, missing: int, offered: int, promised: Mapping[str, int]) -> Obstacle:
    text = f"{amount_text(name, missing)} {name} more"
    if not offered:
        text += " (the node has none)"
    elif amount > offered:
        text += f" (the whole node has {amount_text(name, offered)})"
    elif promised:
        text += f" ({amount_text(name, sum(promised.values()))} promised to {', '.join(promised)})"
    details = {
        "resource": name,
        "wanted": quantity_text(name, amount),
        "missing": quantity_text(name, missing),
        "allocatable": quantity_text(name, offered),
    }
    return Obstacle(NodeResourcesFit.name, Kind.RESOURCE, text, details)


def _promised_of(place: Place, slot: int) -> dict[str, int]:
    """What each nominated pod will take of a resource."""
    vectors = ((pod.key, pod.shape.request_vector) for pod in place.promised)
    return {key: int(vector[slot]) for key, vector in vectors if slot < len(vector) and vector[slot]}


def quantity_text(name: str, amount: int) -> str:
    """An amount exactly, as Kubernetes writes quantities: 300m, 1536Mi, 2."""
    if name == CPU:
        return str(Quantity(amount * NANO_IN_MILLI))
    return str(Quantity(amount * NANO, Format.BINARY_SI if _is_in_bytes(name) else Format.DECIMAL_SI))


def amount_text(name: str, amount: int) -> str:
    """An amount as people write it: 0.3 (cpu), 1.5Gi (bytes), 2 (anything else). Never less than the amount."""
    if name == CPU:
        return f"{amount / 1000:.3f}".rstrip("0").rstrip(".")
    if not _is_in_bytes(name):
        return str(amount)
    power = min(max(amount.bit_length() - 1, 0) // 10, len(_BINARY_UNITS) - 1)
    hundredths = -(-amount * 100 // (1 << 10 * power))
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + _BINARY_UNITS[power]


def _is_in_bytes(name: str) -> bool:
    return name in (MEMORY, EPHEMERAL_STORAGE) or is_huge_page_resource(name)


# --- taints and cordons -----------------------------------------------------------------------------------------


def _taints(place: Place) -> list[Obstacle]:
    return [_taint(taint) for taint in _intolerable_taints(place) if not _is_of_cordon(place, taint)]


def _is_only_cordoned(place: Place) -> bool:
    """Whether the only taint is the cordon's own: then the cordon says it all."""
    return all(_is_of_cordon(place, taint) for taint in _intolerable_taints(place))


def _is_of_cordon(place: Place, taint: Taint) -> bool:
    return place.is_cordoned and taint.key == UNSCHEDULABLE_TAINT.key


def _intolerable_taints(place: Place) -> list[Taint]:
    taints = place.columns.taints
    tolerations = place.pod.shape.spec.tolerations
    return [
        taint
        for taint in taints.sets[taints.set_of_row[place.row]]
        if taint.effect in HARD_EFFECTS and not is_tolerated(taint, tolerations)
    ]


def _taint(taint: Taint) -> Obstacle:
    said = f"{taint.key}={taint.value}" if taint.value else taint.key
    details = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return Obstacle(TaintToleration.name, Kind.TAINT, f"tolerate {said}:{taint.effect}", details)


def _cordon(place: Place) -> Obstacle:
    text = f"uncordon it (kubectl uncordon {place.node_name})"
    return Obstacle(NodeUnschedulable.name, Kind.CORDON, text)


# --- labels of the node -----------------------------------------------------------------------------------------


def _labels(place: Place, wanted: RequiredNodeAffinity) -> list[Obstacle]:
    labels, name = place.columns.labels.of(place.row), place.node_name
    failing = [_label(r, labels) for r in wanted.labels.requirements if not r.matches(labels)]
    if wanted.affinity is not None and not wanted.affinity.matches(labels, name):
        by_term = [_failing_of_term(term, labels, name) for term in wanted.affinity.terms]
        # One term that holds is enough, so the one with the least to change is the one to look at.
        failing += sorted(by_term, key=len)[0] if by_term else []
    return list({obstacle.text: obstacle for obstacle in failing}.values())


def _failing_of_term(term: Term, labels: Mapping[str, str], name: str) -> list[Obstacle]:
    if term.faults:
        return [Obstacle(NodeAffinity.name, Kind.NODE_LABEL, f"a selector that can be read: {term.faults[0]}")]
    failing = [_label(r, labels) for r in term.labels if not r.matches(labels)]
    for field in term.fields:
        if not (field.matches_value(name) if field.key == NAME_FIELD else field.matches_absent):
            is_wanted = field.operator is Operator.IN
            text = f"needs the node {field.value}" if is_wanted else f"needs another node than {field.value}"
            failing.append(Obstacle(NodeAffinity.name, Kind.NODE_LABEL, text, {"needs": f"{field.key}={field.value}"}))
    return failing


def _label(requirement: Requirement, labels: Mapping[str, str]) -> Obstacle:
    key, value = requirement.key, labels.get(requirement.key)
    # A long key is not worth saying twice.
    has = f"has no {key.rpartition('/')[2]}" if value is None else f"has {value if '/' in key else f'{key}={value}'}"
    match requirement.operator:
        case Operator.EXISTS:
            text = f"needs the label {key}"
        case Operator.DOES_NOT_EXIST:
            text = f"must not have the label {key}, {has}"
        case _:
            text = f"needs {requirement}, {has}"
    details = {"needs": str(requirement), "has": f"{key}={value}" if value is not None else ""}
    return Obstacle(NodeAffinity.name, Kind.NODE_LABEL, text, details)


# --- ports and features -----------------------------------------------------------------------------------------


def _ports(place: Place, wanted: Iterable[HostPort]) -> list[Obstacle]:
    found = []
    for port in wanted:
        holder = _holder(place.pods_here(), port)
        if holder is not None:
            said = f"{port.protocol} {port.port}" + (f" on {port.address}" if port.address != ANY_ADDRESS else "")
            details: dict[str, str | int] = {
                "protocol": port.protocol,
                "port": port.port,
                "address": port.address,
                "takenBy": holder.key,
            }
            text = f"host port {said} is taken by {holder.key}"
            found.append(Obstacle(NodePorts.name, Kind.HOST_PORT, text, details))
    return found


def _holder(pods: Iterable[PodRecord], wanted: HostPort) -> PodRecord | None:
    for pod in pods:
        for port in pod.shape.host_ports:
            is_same = port.protocol == wanted.protocol and port.port == wanted.port
            if is_same and (port.address == wanted.address or ANY_ADDRESS in (port.address, wanted.address)):
                return pod
    return None


def _feature(place: Place, needed: list[str]) -> Obstacle:
    node = place.columns.nodes[place.row]
    declared = node.status.declared_features if node is not None else ()
    missing = [feature for feature in needed if feature not in declared]
    text = f"needs a kubelet that declares {', '.join(missing)}"
    return Obstacle(NodeDeclaredFeatures.name, Kind.FEATURE, text, {"needs": ",".join(missing)})
