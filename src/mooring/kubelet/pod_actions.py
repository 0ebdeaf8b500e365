"""The plan: which containers of a pod to start now, which to wait for, and whether the pod is through.

Comes in   a pod, its slots, the time
Goes out   `Plan`: what to start, what to hold back and until when, whether nothing will run any more

Init containers run one after the other, each to its success; sidecars from their turn on, and the next one waits only
until they have come up; then all containers at once.

 1. A pod that has got as far as its containers never goes back to its init containers.
 2. A container that failed is started at once the first time. Then it waits, counted from its end: 10 s, doubling to
    300 s with each further start; a run of more than 600 s makes the next wait the first again. All as the kubelet
    does it.
 3. A pod is through when no container will run again: then its sidecars are stopped.
 4. While all containers of a pod without others are on their way or run, there is nothing to do; while none has been
    touched, all are to be started. Both are seen at one glance: nearly every look at a pod ends so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mooring.api.durations import format_duration
from mooring.kubelet.container_record import Slot
from mooring.kubelet.runtime import START_ERROR, Exited, Role, Running, Waiting
from mooring.kubelet.views import KubeletContainer, KubeletPod, KubeletPodSpec

BACKOFF_S_INITIAL = 10.0
BACKOFF_S_MAX = 300.0
BACKOFF_RESET_S = 2 * BACKOFF_S_MAX
RESTART_S = 1.0
"""How long it takes a kubelet to see that a container has ended: it looks once a second."""

ROUNDING_S = 0.001
"""An alarm may ring that much too early: the wall clock and the loop's do not round alike."""


@dataclass(frozen=True, slots=True)
class Held:
    """Who is not started before that time, by the wall clock; and what is told of it meanwhile, if not how it ended."""

    slot: Slot
    until_s: float
    shown: Waiting | None = None


@dataclass(slots=True)
class Plan:
    """What to do now."""

    start: list[Slot] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    is_through: bool = False
    """Whether the containers have run for the last time."""


NOTHING = Plan()
"""Shared: nobody adds to it."""


def plan_of(pod: KubeletPod, slots: Iterable[Slot], now_s: float) -> Plan:
    """What to do about a pod that is neither ended nor to end."""
    spec, every = pod.spec, list(slots)
    plan = _seen_at_a_glance(every)
    if plan is not None:
        return plan
    plan = Plan()
    containers = [slot for slot in every if slot.role is Role.CONTAINER]
    first = [slot for slot in every if slot.role in (Role.INIT, Role.SIDECAR)]
    is_initialized = any(slot.attempt >= 0 for slot in containers)
    if not _plan_first(plan, pod, first, now_s, is_initialized):
        return plan
    for slot in containers:
        _plan_one(plan, pod, slot, now_s)
    for slot in every:
        if slot.role is Role.EPHEMERAL and slot.attempt < 0 and not slot.is_starting:
            plan.start.append(slot)
    plan.is_through = all(_has_ended(spec, slot) for slot in containers)
    return plan


def should_restart(container: KubeletContainer, spec: KubeletPodSpec, code: int) -> bool:
    """Whether a container that ended so is started again."""
    if container.restart_policy is not None:
        for rule in container.restart_policy_rules:
            codes = rule.exit_codes
            if codes is not None and (code in codes.values) is (codes.operator == "In"):
                return True
    policy = container.restart_policy or spec.restart_policy or "Always"
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def backed_off(slot: Slot, now_s: float) -> float:
    """The time before which a container that has ended is not started again; it may be over."""
    assert isinstance(slot.state, Exited), f"{slot.container.name} has not ended"
    finished_s = slot.state.finished_s
    if not slot.backoff_s or finished_s - slot.backoff_since_s > BACKOFF_RESET_S:
        return now_s
    return finished_s + slot.backoff_s


def count_restart(slot: Slot, now_s: float) -> None:
    """It is started again: lengthen its next wait."""
    assert isinstance(slot.state, Exited), f"{slot.container.name} has not ended"
    is_first = not slot.backoff_s or slot.state.finished_s - slot.backoff_since_s > BACKOFF_RESET_S
    slot.backoff_s = BACKOFF_S_INITIAL if is_first else min(2 * slot.backoff_s, BACKOFF_S_MAX)
    slot.backoff_since_s = now_s


def crash_loop(slot: Slot, pod: KubeletPod) -> Waiting:
    """What is told of a container that waits to be started again."""
    metadata = pod.metadata
    who = f"{metadata.name}_{metadata.namespace}({metadata.uid})"
    wait = format_duration(int(slot.backoff_s))
    return Waiting("CrashLoopBackOff", f"back-off {wait} restarting failed container={slot.container.name} pod={who}")


def never_ran(slot: Slot, pod: KubeletPod) -> Waiting | None:
    """What is told of a container that could not be started and will be tried again: its end is its last state."""
    state = slot.state
    if not isinstance(state, Exited) or state.reason != START_ERROR:
        return None
    return Waiting("RunContainerError", state.message) if should_restart(slot.container, pod.spec, state.code) else None


def _seen_at_a_glance(every: list[Slot]) -> Plan | None:
    are_under_way = are_untouched = bool(every)
    for slot in every:
        if slot.role is not Role.CONTAINER:
            return None
        are_under_way = are_under_way and slot.is_under_way
        are_untouched = are_untouched and slot.is_untouched
    if are_under_way:
        return NOTHING
    return Plan(start=every) if are_untouched else None


def _plan_first(plan: Plan, pod: KubeletPod, first: Sequence[Slot], now_s: float, is_initialized: bool) -> bool:
    """Init containers and sidecars, in their order. Says whether the containers may run."""
    for slot in first:
        if slot.role is Role.SIDECAR:
            _plan_one(plan, pod, slot, now_s)
            if not is_initialized and not (isinstance(slot.state, Running) and slot.state.is_started):
                return False
        elif not is_initialized:
            if isinstance(slot.state, Exited) and slot.state.code == 0:
                continue
            if isinstance(slot.state, Exited) and not should_restart(slot.container, pod.spec, slot.state.code):
                plan.is_through = True
            else:
                _plan_one(plan, pod, slot, now_s)
            return False
    return True


def _plan_one(plan: Plan, pod: KubeletPod, slot: Slot, now_s: float) -> None:
    if slot.is_under_way:
        return
    if not isinstance(slot.state, Exited):
        plan.start.append(slot)
        return
    if _has_ended(pod.spec, slot):
        return
    seen_s = slot.state.finished_s + RESTART_S
    free_s = backed_off(slot, now_s)
    if now_s < seen_s - ROUNDING_S:
        plan.held.append(Held(slot, seen_s))
    elif now_s < free_s - ROUNDING_S:
        plan.held.append(Held(slot, free_s, crash_loop(slot, pod)))
    else:
        plan.start.append(slot)


def _has_ended(spec: KubeletPodSpec, slot: Slot) -> bool:
    if not isinstance(slot.state, Exited) or slot.is_starting or slot.is_restart_wanted:
        return False
    return slot.role is not Role.SIDECAR and not should_restart(slot.container, spec, slot.state.code)
