"""Obstacles that other pods are: a topology too full of them, friends that are missing, neighbours that object.

Comes in   a place, and the counted states of PodTopologySpread and InterPodAffinity
Goes out   `Obstacle`s that name the domain, the selector and, where one pod is to blame, the pod

 1. All constraints and terms are looked at, also those that the filter does not get to.
 2. Counts are those of the cluster as it is. What a nominated pod would add is left to the refusal's own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mooring.scheduler.cache.labels import ABSENT, LabelColumn
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.cache.selectors import Counter, Part
from mooring.scheduler.cycle.obstacle import Kind, Obstacle, Place
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity, OwnTerm, Required
from mooring.scheduler.plugins.pod_topology_spread import Hard, PodTopologySpread
from mooring.scheduler.plugins.spread_constraints import HOSTNAME, ZONE

REGION = "topology.kubernetes.io/region"
_SHORT = {ZONE: "zone", REGION: "region"}


def spread_obstacles(place: Place, state: tuple[Hard, ...]) -> list[Obstacle]:
    """Each hard constraint that the pod would break here."""
    found = []
    for hard in state:
        constraint = hard.constraint
        code = int(constraint.column.codes[place.row])
        if code == ABSENT:
            found.append(_unlabelled(PodTopologySpread.name, Kind.SPREAD, constraint.column))
            continue
        with_pod = int(hard.domain_counts[code]) + int(constraint.matches_itself)
        allowed = constraint.max_skew + hard.fewest
        if with_pod > allowed:
            selector = str(constraint.selector) or "its selector"
            verb = "would have" if constraint.matches_itself else "has"
            text = (
                f"{_domain(constraint.column, code)} {verb} {_pods(with_pod)} matching {selector}, "
                f"at most {allowed} {'is' if allowed == 1 else 'are'} allowed"
            )
            details = {
                **_where(constraint.column, code),
                "selector": selector,
                "matching": with_pod,
                "allowed": allowed,
            }
            found.append(Obstacle(PodTopologySpread.name, Kind.SPREAD, text, details))
    return found


def affinity_obstacles(place: Place, state: Required) -> list[Obstacle]:
    """Each required term, of the pod or of its neighbours, that is not met here."""
    return [*_missing_friends(place, state), *_own_dislikes(place, state), *_disliked(place, state)]


def _missing_friends(place: Place, state: Required) -> Iterator[Obstacle]:
    own = state.own
    if own.affinity is None:
        return
    for part, column in zip(own.affinity.counter.parts, own.affinity_columns):
        code = int(column.codes[place.row])
        if code == ABSENT:
            yield _unlabelled(InterPodAffinity.name, Kind.AFFINITY, column)
        elif not _found(place, own.affinity.counter, column, code) and not (own.matches_itself and state.friends == 0):
            text = f"no pod matching {_selected(part, place.pod)} {_in_domain(column, code)}"
            details = {**_where(column, code), "selector": str(part.selector)}
            yield Obstacle(InterPodAffinity.name, Kind.AFFINITY, text, details)


def _own_dislikes(place: Place, state: Required) -> Iterator[Obstacle]:
    for term in state.own.anti_affinity:
        if _is_disliked_here(place, term):
            code = int(term.column.codes[place.row])
            text = f"keeps away from {_selected(term.counter.parts[0], place.pod)}: {_who(place, term, code)}"
            details = {**_where(term.column, code), "selector": str(term.counter.parts[0].selector)}
            yield Obstacle(InterPodAffinity.name, Kind.ANTI_AFFINITY, text, details)


def _is_disliked_here(place: Place, term: OwnTerm) -> bool:
    code = int(term.column.codes[place.row])
    return code != ABSENT and _found(place, term.counter, term.column, code) > 0


def _disliked(place: Place, state: Required) -> Iterator[Obstacle]:
    # Replicas object to each other: what their own terms said of a topology is not said again from the other side.
    told = {term.column for term in state.own.anti_affinity if _is_disliked_here(place, term)}
    for term in state.disliking_terms:
        code = int(term.column.codes[place.row])
        if code == ABSENT or not term.domain_counts()[code] or term.column in told:
            continue
        carriers = [pod for pod in _pods_in(place, term.column, code) if term in pod.shape.terms]
        if carriers:
            text = f"{_named(carriers)} {'keep' if len(carriers) > 1 else 'keeps'} it away"
            where = "" if term.column.key == HOSTNAME else f" from {_domain(term.column, code)}"
            details = {**_where(term.column, code), "pod": carriers[0].key}
            yield Obstacle(InterPodAffinity.name, Kind.ANTI_AFFINITY, text + where, details)


# --- who is where -----------------------------------------------------------------------------------------------


def _found(place: Place, counter: Counter, column: LabelColumn, code: int) -> int:
    """How many pods of a domain match."""
    return int(place.columns.selectors.fresh(counter).domains(column, place.columns.height)[code])


def _who(place: Place, term: OwnTerm, code: int) -> str:
    matches: Callable[[PodRecord], bool] = _matcher(term.counter)
    pods = [pod for pod in _pods_in(place, term.column, code) if matches(pod)]
    verb = "run" if len(pods) > 1 else "runs"
    return f"{_named(pods)} {verb} {_in_domain(term.column, code)}"


def _matcher(counter: Counter) -> Callable[[PodRecord], bool]:
    return lambda pod: counter.matches(pod.namespace, pod.shape.labels)


def _pods_in(place: Place, column: LabelColumn, code: int) -> Iterator[PodRecord]:
    columns = place.columns
    rows = np.flatnonzero(column.codes[: columns.height] == code)
    for row in sorted(rows.tolist(), key=lambda row: row != place.row):  # the node's own pods first
        yield from columns.pods_on[row].values()


def _named(pods: list[PodRecord]) -> str:
    if not pods:
        return "a pod"
    others = len(pods) - 1
    return pods[0].key if not others else f"{pods[0].key} and {others} other{'s' if others > 1 else ''}"


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"


# --- topologies in words ----------------------------------------------------------------------------------------


def _domain(column: LabelColumn, code: int) -> str:
    """`zone a`, `this node`, `rack=r1`."""
    value = column.values[code]
    if column.key == HOSTNAME:
        return "this node"
    short = _SHORT.get(column.key)
    return f"{short} {value}" if short is not None else f"{column.key}={value}"


def _in_domain(column: LabelColumn, code: int) -> str:
    if column.key == HOSTNAME:
        return "on this node"
    return f"{'in' if column.key in _SHORT else 'where'} {_domain(column, code)}"


def _where(column: LabelColumn, code: int) -> dict[str, str | int]:
    return {"topologyKey": column.key, "domain": column.values[code] or ""}


def _selected(part: Part, pod: PodRecord) -> str:
    """`app=db`, with the namespace where that is not the pod's own."""
    said = str(part.selector) or ("(no labelSelector)" if part.selector.matches_nothing else "any labels")
    if part.namespaces is None:
        return f"{said} of any namespace"
    if part.namespaces == {pod.namespace}:
        return said
    return f"{said} of namespace {', '.join(sorted(part.namespaces)) or '(none)'}"


def _unlabelled(plugin: str, kind: Kind, column: LabelColumn) -> Obstacle:
    return Obstacle(plugin, kind, f"needs the label {column.key}", {"topologyKey": column.key})
