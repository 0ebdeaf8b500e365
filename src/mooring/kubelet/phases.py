"""The phase of a pod, from its containers.

Comes in   a pod's spec, its slots, whether it is to end
Goes out   Pending, Running, Succeeded or Failed

 1. A pod is Pending until each of its containers has been started once, and Running from then on, even while all of
    them wait to be started again.
 2. It is over only when nothing of it runs any more. Sidecars do not count for how it ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.kubelet.container_record import Slot
from mooring.kubelet.pod_actions import should_restart
from mooring.kubelet.runtime import Exited, Role, Running
from mooring.kubelet.views import KubeletPodSpec

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
OVER = (SUCCEEDED, FAILED)


def phase_of(spec: KubeletPodSpec, slots: Sequence[Slot], *, is_ending: bool) -> str:
    """`is_ending`: no container will be started any more, whatever the restart policy says."""
    if slots and all(slot.role is Role.CONTAINER and isinstance(slot.state, Running) for slot in slots):
        return RUNNING  # as nearly all are that are asked for
    containers = [slot for slot in slots if slot.role is Role.CONTAINER]
    if any(_has_failed_for_good(spec, slot) for slot in slots if slot.role is Role.INIT):
        return FAILED
    is_initialized = any(slot.has_run for slot in containers)
    if any(_is_pending(slot, is_initialized) for slot in slots) or not all(slot.has_run for slot in containers):
        return PENDING
    if any(slot.is_running for slot in slots if slot.role is not Role.EPHEMERAL):
        return RUNNING
    ends = [_end_of(slot) for slot in containers]
    if not is_ending and any(should_restart(slot.container, spec, end) for slot, end in zip(containers, ends)):
        return RUNNING
    return SUCCEEDED if not any(ends) else FAILED


def _is_pending(slot: Slot, is_initialized: bool) -> bool:
    if slot.role is Role.INIT:
        return not isinstance(slot.state, Exited) and slot.last is None
    if slot.role is Role.SIDECAR and not is_initialized:
        return not (isinstance(slot.state, Running) and slot.state.is_started) and slot.last is None
    return False


def _has_failed_for_good(spec: KubeletPodSpec, slot: Slot) -> bool:
    state = slot.state
    return isinstance(state, Exited) and state.code != 0 and not should_restart(slot.container, spec, state.code)


def _end_of(slot: Slot) -> int:
    """The exit code of the run that ended last."""
    ended = slot.state if isinstance(slot.state, Exited) else slot.last
    return ended.code if ended is not None else 0
