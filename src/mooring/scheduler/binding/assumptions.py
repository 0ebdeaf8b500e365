"""Assumptions: pods that are believed to be on a node, although the API server has not said so yet.

Comes in   decisions that were believed; what became of their binding; what the watch says of those pods
Goes out   whether a pod is assumed, and which assumptions are overdue

                        the watch shows it on a node
    BINDING ──────────────────────────────────────────────> confirmed, and no assumption any more
       │  the API server has accepted the binding               ^
       ├────────────────────────────────────────────────> BOUND ┘
       │  refused, failed, or given up                      │  no confirmation within `overdue_s`
       └────────> forgotten                                 └────────> overdue: to be looked up

 1. A pod is assumed from the moment that the columns believe it until the watch confirms it, or it is forgotten.
 2. An overdue assumption is not thrown away blindly: whoever watches over them asks the API server what became of
    the pod, because freeing the room of a pod that is there would over-commit its node.
 3. A pod that is deleted while it is assumed is `released`: it counts nowhere any more, and the binding that is still
    under way ends in nothing.
"""

from __future__ import annotations

from enum import Enum

from mooring.scheduler.cache.pods import PodInfo


class AssumptionState(Enum):
    BINDING = "binding"
    BOUND = "bound"
    RELEASED = "released"


class Assumption:
    """One believed placement."""

    __slots__ = ("due_s", "node_name", "pod", "state")

    def __init__(self, pod: PodInfo, node_name: str) -> None:
        self.pod = pod
        self.node_name = node_name
        self.state = AssumptionState.BINDING
        self.due_s = float("inf")

    def __repr__(self) -> str:
        return f"Assumption({self.pod.key} on {self.node_name}, {self.state.value})"


class Assumptions:
    """All believed placements, by the uid of the pod."""

    def __init__(self, overdue_s: float | None) -> None:
        self._overdue_s = overdue_s
        self._assumptions: dict[str, Assumption] = {}
        self._bound: dict[str, Assumption] = {}
        """Those that wait for their confirmation, in the order in which they are due."""

    def __len__(self) -> int:
        return len(self._assumptions)

    def __contains__(self, uid: str) -> bool:
        return uid in self._assumptions

    def get(self, uid: str) -> Assumption | None:
        return self._assumptions.get(uid)

    def add(self, pod: PodInfo, node_name: str) -> Assumption:
        assert pod.uid not in self._assumptions, f"{pod} is assumed already"
        assumption = self._assumptions[pod.uid] = Assumption(pod, node_name)
        return assumption

    def bound(self, assumption: Assumption, now_s: float) -> None:
        """The API server has accepted the binding; the watch should tell of it soon."""
        if self._assumptions.get(assumption.pod.uid) is not assumption:
            return  # the watch was faster than the answer
        if assumption.state is AssumptionState.RELEASED:
            self.remove(assumption.pod.uid)  # it is being deleted: nobody waits for it to be confirmed
            return
        assumption.state = AssumptionState.BOUND
        if self._overdue_s is not None:
            assumption.due_s = now_s + self._overdue_s
            self._bound[assumption.pod.uid] = assumption

    def remove(self, uid: str) -> Assumption | None:
        """Confirmed or forgotten: no assumption any more."""
        self._bound.pop(uid, None)
        return self._assumptions.pop(uid, None)

    def release(self, uid: str) -> None:
        """The pod is being deleted while its binding is under way: the columns do not count it any more."""
        self._assumptions[uid].state = AssumptionState.RELEASED

    def overdue(self, now_s: float) -> list[Assumption]:
        """Those that should have been confirmed by now. Each is told once; `bound` sets the next date."""
        found: list[Assumption] = []
        for assumption in self._bound.values():
            if assumption.due_s > now_s:
                break
            found.append(assumption)
        for assumption in found:
            del self._bound[assumption.pod.uid]
        return found

    @property
    def next_due_s(self) -> float | None:
        for assumption in self._bound.values():
            return assumption.due_s
        return None
