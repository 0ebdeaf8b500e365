"""Queueing hints of InterPodAffinity: placed pods that come, go or change labels; nodes that come or change labels.

kube-scheduler v1.36 skips some events that would help, and so do these hints:

1. A namespace selector is not looked up: it stands for all namespaces if it would select one without labels, and for
   none otherwise.
2. The last pod that matches a pod's affinity to its own group goes, so that the pod could be the first of the group.
3. A node comes, or leaves a domain, and only terms of other pods reject the pod elsewhere.
4. A pod goes, or changes labels, that matches some but not all anti-affinity terms of the rejected pod: the terms are
   read as one. The same holds for the terms of a pod that goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mooring.api.errors import ObjectError
from mooring.api.views.node import Node
from mooring.api.views.pod import PodAffinityTerm
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.cache.terms import AffinityTerm
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    has_node_or_nomination,
    queue_if,
    queue_on_own_update,
)

Terms = tuple[AffinityTerm, ...]


class HintTerms(NamedTuple):
    """What a pod demands; None where it cannot be read."""

    affinity: Terms | None
    anti_affinity: Terms | None


def inter_pod_affinity_events() -> tuple[ClusterEventWithHint, ...]:
    """The events that can help a pod that InterPodAffinity rejected."""
    return (
        ClusterEventWithHint(
            EventResource.ASSIGNED_POD, ActionType.ADD, _is_a_friend, per_signature=True, per_signature_pair=True
        ),
        ClusterEventWithHint(
            EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL, _changes_sides, per_signature=True
        ),
        ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _was_an_enemy, per_signature=True),
        ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL, queue_on_own_update),
        ClusterEventWithHint(
            EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL, _joins_another_domain, per_signature=True
        ),
    )


def _is_a_friend(pod: PodInfo, old: None, new: PodInfo) -> QueueingHint:
    if not has_node_or_nomination(new):
        return QueueingHint.SKIP
    terms = _required_terms(pod.signature)
    if terms.affinity is None or terms.anti_affinity is None:
        return QueueingHint.QUEUE
    return queue_if(_all_speak_of(terms.affinity, new.signature))


def _changes_sides(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    """A placed pod has other labels: has it become a friend, or is it no enemy any more?"""
    if not has_node_or_nomination(old) or not has_node_or_nomination(new):
        return QueueingHint.SKIP
    terms = _required_terms(pod.signature)
    if terms.affinity is None or terms.anti_affinity is None:
        return QueueingHint.QUEUE
    before, after = old.signature, new.signature
    becomes_friend = not _all_speak_of(terms.affinity, before) and _all_speak_of(terms.affinity, after)
    was_enemy = _all_speak_of(terms.anti_affinity, before) and not _all_speak_of(terms.anti_affinity, after)
    return queue_if(becomes_friend or was_enemy)


def _was_an_enemy(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    """A pod is gone: did one of the two keep the other away?"""
    if not has_node_or_nomination(old):
        return QueueingHint.SKIP
    terms = _required_terms(pod.signature)
    if terms.affinity is None or terms.anti_affinity is None or _all_speak_of(terms.anti_affinity, old.signature):
        return QueueingHint.QUEUE
    of_other = _required_terms(old.signature).anti_affinity
    return queue_if(of_other is None or _all_speak_of(of_other, pod.signature))


def _joins_another_domain(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    """A node came, or has other labels: may the pod find friends around it, or no enemies?"""
    terms = _required_terms(pod.signature)
    if terms.affinity is None or terms.anti_affinity is None:
        return QueueingHint.QUEUE
    after = new.metadata.labels
    if old is None:
        # Without enemies' labels a node is always free of them; with them it is for the next attempt to find out.
        return queue_if(bool(terms.anti_affinity) or any(term.topology_key in after for term in terms.affinity))
    before = old.metadata.labels
    return queue_if(
        any(_enters(term.topology_key, before, after) for term in terms.affinity)
        or any(_leaves(term.topology_key, before, after) for term in terms.anti_affinity)
    )


def _enters(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether a node is in a domain of the topology in which it was not before."""
    return key in after and before.get(key) != after[key]


def _leaves(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    return key in before and after.get(key) != before[key]


def _all_speak_of(terms: Terms, signature: PodSignature) -> bool:
    """Whether there are terms, and a pod of the signature matches each of them."""
    return bool(terms) and all(_speaks_of(term, signature) for term in terms)


def _speaks_of(term: AffinityTerm, signature: PodSignature) -> bool:
    in_reach = signature.namespace in term.namespaces or term.namespace_selector.matches({})
    return in_reach and term.selector.matches(signature.labels)


@PerSignature
def _required_terms(signature: PodSignature) -> HintTerms:
    affinity = signature.spec.affinity
    near = affinity.pod_affinity if affinity is not None else None
    apart = affinity.pod_anti_affinity if affinity is not None else None
    return HintTerms(
        _compiled(near.required_during_scheduling_ignored_during_execution if near is not None else (), signature),
        _compiled(apart.required_during_scheduling_ignored_during_execution if apart is not None else (), signature),
    )


def _compiled(terms: Sequence[PodAffinityTerm], signature: PodSignature) -> Terms | None:
    try:
        return tuple(AffinityTerm(term, signature.namespace) for term in terms)
    except ObjectError:
        return None
