"""No event that helps a rejected pod is missed: random small clusters, one change each.

A pod is rejected, and a change makes it schedulable. Then at least one of the plugins that rejected it has registered
an event of the change, and its hint returns QUEUE. The exceptions are those of kube-scheduler: the changes that its
hints skip are listed here, each with a condition and an example. The timeout of five minutes limits their effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.labels import compile_selector
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, PodAffinityTerm
from mooring.api.views.storage import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from mooring.api.views.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from mooring.scheduler.queue.queueing_hints import registered_events
from tests.api.builders import selector
from tests.builders import ZONE, disk, namespace, node, pod, pods_like, spread
from tests.scheduler.queueing import any_hint_queues, change_events
from tests.scheduler.single_changes import Changed, Neighbourhood, random_neighbourhood
from tests.storage_builders import bound, csi_node, volume

CHANGES = 10
"""Number of changes that are tried, one at a time, in a cluster that rejects the pod."""


class Case(NamedTuple):
    """A pod that a change makes schedulable, the plugins that rejected it, and the change."""

    rejected: Pod
    rejectors: frozenset[str]
    old: ApiObject | None
    new: ApiObject | None
    around: tuple[ApiObject, ...]


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), changes=st.lists(st.integers(0, 2**32), min_size=CHANGES, max_size=CHANGES))
def test_a_change_that_helps_a_pod_queues_it(seed: int, changes: list[int]) -> None:
    neighbourhood = random_neighbourhood(seed)
    rejectors = neighbourhood.rejectors()
    for change in map(neighbourhood.draw, changes if rejectors else ()):
        case = missed(neighbourhood, rejectors, change)
        assert case is None or any(excuse(case) for excuse in SKIPPED_BY_KUBE_SCHEDULER.values())


def missed(neighbourhood: Neighbourhood, rejectors: frozenset[str], change: Changed) -> Case | None:
    """The case, if the change helps and no hint queues the pod."""
    engine = neighbourhood.engine_after(change)
    rejected = neighbourhood.rejected_after(change)
    record = engine.record(rejected)
    if not engine.decide(record).is_placed:
        return None
    events = registered_events(engine.cycle_for(record).profile)
    changes = change_events(engine, *change)
    if any(any_hint_queues(events[plugin], record, changes) for plugin in rejectors):
        return None
    return Case(rejected, rejectors, *change, tuple(neighbourhood.objects.values()))


# --- changes that kube-scheduler skips -------------------------------------------------------------------------


def _has_no_event(case: Case) -> bool:
    is_selecting = (Namespace, Service, ReplicaSet, StatefulSet, ReplicationController)
    return isinstance(case.new or case.old, is_selecting)


def _is_deleted_without_event(case: Case) -> bool:
    return case.new is None and not isinstance(case.old, Node | Pod | VolumeAttachment)


def _goes_with_its_node(case: Case) -> bool:
    return isinstance(case.old, Node) and case.new is None and case.rejectors != {"PodTopologySpread"}


def _is_first_of_its_kind(case: Case) -> bool:
    """Its last matching pod is gone, is one no more, or has lost its node."""
    terms, labels = _near(case.rejected), case.rejected.metadata.labels
    is_of_its_kind = bool(terms) and all(compile_selector(term.label_selector).matches(labels) for term in terms)
    return "InterPodAffinity" in case.rejectors and is_of_its_kind and isinstance(case.old, Pod | Node)


def _is_disliked_elsewhere(case: Case) -> bool:
    """Others keep it away where they are; the node that came, or left their domain, is not there."""
    others = (view for view in case.around if isinstance(view, Pod) and view.spec.node_name)
    return "InterPodAffinity" in case.rejectors and isinstance(case.new, Node) and any(map(_apart, others))


def _selects_namespaces(case: Case) -> bool:
    speaking = [case.rejected, *(view for view in (case.old, case.new) if isinstance(view, Pod))]
    terms = [term for view in speaking for term in (*_near(view), *_apart(view))]
    selectors = [term.namespace_selector for term in terms if term.namespace_selector is not None]
    return "InterPodAffinity" in case.rejectors and not all(
        compile_selector(selector).matches({}) for selector in selectors
    )


def _says_several_things(case: Case) -> bool:
    is_one = isinstance(case.old, Pod) and "InterPodAffinity" in case.rejectors
    return is_one and (len(_apart(case.rejected)) > 1 or (isinstance(case.old, Pod) and len(_apart(case.old)) > 1))


def _starts_to_terminate(case: Case) -> bool:
    return (
        isinstance(case.new, Pod)
        and case.new.metadata.deletion_timestamp is not None
        and "PodTopologySpread" in case.rejectors
    )


def _holds_it_in_another_namespace(case: Case) -> bool:
    return (
        isinstance(case.old, Pod)
        and case.old.metadata.namespace != case.rejected.metadata.namespace
        and "VolumeRestrictions" in case.rejectors
    )


def _is_limited_otherwise(case: Case) -> bool:
    is_storage = isinstance(case.new, CSINode | PersistentVolume | PersistentVolumeClaim)
    return is_storage and "NodeVolumeLimits" in case.rejectors


def _narrows_no_more(case: Case) -> bool:
    constraints = case.rejected.spec.topology_spread_constraints
    return case.new is case.rejected and any(constraint.match_label_keys for constraint in constraints)


SKIPPED_BY_KUBE_SCHEDULER: Mapping[str, Callable[[Case], bool]] = {
    "no plugin registers namespaces, services and controllers, although some read them": _has_no_event,
    "no plugin registers deleted objects, except nodes, pods and attachments": _is_deleted_without_event,
    "only spreading registers deleted nodes, which take their pods with them": _goes_with_its_node,
    "the affinity hints do not know that a pod may be the first that matches its own terms": _is_first_of_its_kind,
    "the affinity hint for nodes checks the terms of the pod itself, not those of other pods": _is_disliked_elsewhere,
    "the affinity hints do not resolve namespace selectors": _selects_namespaces,
    "the affinity hints combine several anti-affinity terms into one": _says_several_things,
    "spreading does not count terminating pods, but has no event for the start of a termination": _starts_to_terminate,
    "the hint for disks compares namespaces": _holds_it_in_another_namespace,
    "changes of counted volumes and removed limits are not registered, or not recognized": _is_limited_otherwise,
    "matchLabelKeys are compared by the merged selector only": _narrows_no_more,
}

WEB = {"app": "web"}
IN_A, ALSO_IN_A, IN_B = node("n1", zone="a"), node("n2", zone="a"), node("n2", zone="b")
TAINTED_A, TAINTED_B = node("n1", zone="a", taints=["x:NoSchedule"]), node("n2", zone="b", taints=["x:NoSchedule"])
NEAR_TEAM_A = pod(near=[pods_like(ZONE, namespaces_like=selector(team="a"), app="web")])
OF_TEAM_A = pod("q", labels=WEB, namespace="team-a", on="n1")
ATTACHED = (volume("pv-1", driver="d"), volume("pv-2", driver="d"), bound("data", "pv-1"), bound("logs", "pv-2"))
USES_LOGS = pod("q", claims=["logs"], on="n1")
WEB_ON_1 = pod("q", labels=WEB, on="n1")
SPREAD = pod(labels=WEB, spread=[spread(ZONE, app="web")])
NARROW = [spread(ZONE, app="web", match_label_keys=["tier"])]

EXAMPLES: list[tuple[Pod, tuple[ApiObject, ...], Changed]] = [
    (NEAR_TEAM_A, (IN_A, OF_TEAM_A), (namespace("team-a"), namespace("team-a", team="a"))),
    (pod(claims=["data"]), (IN_A, *ATTACHED, USES_LOGS), (csi_node("n1", {"d": 1}), None)),
    (pod(apart=[pods_like(ZONE, app="web")]), (ALSO_IN_A, WEB_ON_1), (IN_A, None)),
    (pod(labels=WEB, near=[pods_like(ZONE, app="web")]), (TAINTED_A, IN_B), (WEB_ON_1, None)),
    (pod(labels=WEB), (IN_A, pod("q", apart=[pods_like(ZONE, app="web")], on="n1")), (None, IN_B)),
    (NEAR_TEAM_A, (IN_A, namespace("team-a", team="a")), (None, OF_TEAM_A)),
    (pod(apart=[pods_like(ZONE, app="web"), pods_like(ZONE, app="db")]), (IN_A,), (WEB_ON_1, None)),
    (SPREAD, (IN_A, TAINTED_B), (WEB_ON_1, pod("q", labels=WEB, on="n1", terminating=True))),
    (pod(volumes=[disk("d")]), (IN_A,), (pod("q", namespace="team-a", volumes=[disk("d")], on="n1"), None)),
    (pod(claims=["data"]), (IN_A, *ATTACHED, USES_LOGS), (csi_node("n1", {"d": 1}), csi_node("n1", {"d": None}))),
    (
        pod("p", labels={**WEB, "tier": "x"}, spread=NARROW),
        (IN_A, TAINTED_B, pod("q", labels={**WEB, "tier": "x"}, on="n1"), pod("r", labels=WEB, on="n2")),
        (pod("p", labels={**WEB, "tier": "x"}, spread=NARROW), pod("p", labels=WEB, spread=NARROW)),
    ),
]


@pytest.mark.parametrize(
    ("reason", "rejected", "around", "change"),
    [(reason, *example) for reason, example in zip(SKIPPED_BY_KUBE_SCHEDULER, EXAMPLES, strict=True)],
    ids=list(SKIPPED_BY_KUBE_SCHEDULER),
)
def test_kube_scheduler_skips_this_change_too(
    reason: str, rejected: Pod, around: tuple[ApiObject, ...], change: Changed
) -> None:
    old = change[0]
    example = Neighbourhood(rejected, (*around, *((old,) if old not in (None, rejected) else ())))
    rejectors = example.rejectors()
    assert rejectors
    case = missed(example, rejectors, change)
    assert case is not None
    assert SKIPPED_BY_KUBE_SCHEDULER[reason](case)


def _near(view: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = view.spec.affinity.pod_affinity if view.spec.affinity is not None else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity is not None else ()


def _apart(view: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = view.spec.affinity.pod_anti_affinity if view.spec.affinity is not None else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity is not None else ()
