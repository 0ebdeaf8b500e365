"""Questions that the hints of several plugins ask about a pod event.

Comes in   the sleeping pod, and the pod that something happened to
Goes out   yes or no

 1. Hints keep no record and change nothing: the same event may be told again, to a pod that was in flight meanwhile.
 2. What a hint derives from a signature is kept in the signature's `memo`, under a key with the plugin in it. A
    signature that was swept has lost its memo and its `terms`; so hints read `signature.spec` and derive again, and
    never read `signature.terms`.
"""

from __future__ import annotations

from mooring.scheduler.cache.pods import PodInfo


def takes_up_room(pod: PodInfo) -> bool:
    """Whether other pods are kept away by this one: it has a node, or the promise of one."""
    return bool(pod.node_name or pod.nominated_node)


def is_about_itself(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    """As a hint: whether it was the sleeping pod itself that was updated."""
    return new is not None and new.uid == pod.uid


def never(pod: PodInfo, old: object, new: object) -> bool:
    """As a hint: the event is worth knowing of, but does not wake anybody."""
    return False
