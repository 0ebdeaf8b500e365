"""The health of one run of a container: what follows from probe results.

Input: results in order. Output: whether the container is started and ready; whether to kill it.

    startup    other probes wait until it succeeds; `failureThreshold` failures in a row kill the container
    readiness  ready after `successThreshold` successes in a row, not ready after `failureThreshold` failures
    liveness   `failureThreshold` failures in a row kill the container

 1. Without a startup probe a container is started at once; without a readiness probe it is ready once started.
 2. After a probe killed the container, that probe is not run again in this run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mooring.kubelet.full_views import FullContainer, FullPod, FullProbe

GRACE_S = 30.0
"""The default grace period; the API server sets it on every pod."""


class ProbeKind(Enum):
    """The value is part of events."""

    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"


@dataclass(frozen=True, slots=True)
class ContainerHealth:
    is_ready: bool
    is_started: bool


@dataclass(slots=True)
class _Count:
    was_success: bool | None = None
    times: int = 0


class RunHealth:
    """One run of a container."""

    def __init__(self, container: FullContainer) -> None:
        self._probes = probes_of(container)
        self._counts = {kind: _Count() for kind in self._probes}
        self._held: set[ProbeKind] = set()
        self._is_started = ProbeKind.STARTUP not in self._probes
        self._is_ready = ProbeKind.READINESS not in self._probes

    @property
    def health(self) -> ContainerHealth:
        return ContainerHealth(self._is_started and self._is_ready, self._is_started)

    def wants(self, kind: ProbeKind, elapsed_s: float) -> bool:
        """Whether to run the probe now, `elapsed_s` after the start."""
        if kind in self._held or int(elapsed_s) < self._probes[kind].initial_delay_seconds:
            return False
        return self._is_started is (kind is not ProbeKind.STARTUP)

    def hold(self, kind: ProbeKind) -> None:
        """Stop this probe."""
        self._held.add(kind)

    def count(self, kind: ProbeKind, *, is_success: bool) -> bool:
        """Count a result. Returns whether to kill the container."""
        probe, count = self._probes[kind], self._counts[kind]
        count.times = count.times + 1 if count.was_success is is_success else 1
        count.was_success = is_success
        if count.times < (probe.success_threshold if is_success else probe.failure_threshold):
            return False
        match kind:
            case ProbeKind.READINESS:
                self._is_ready = is_success
            case ProbeKind.STARTUP:
                self._is_started = is_success
                self.hold(kind)
            case ProbeKind.LIVENESS if not is_success:
                self.hold(kind)
        return not is_success and kind is not ProbeKind.READINESS


def first_health(container: FullContainer) -> ContainerHealth:
    """The health of a container that just started."""
    return RunHealth(container).health


def probes_of(container: FullContainer) -> dict[ProbeKind, FullProbe]:
    every = {
        ProbeKind.STARTUP: container.startup_probe,
        ProbeKind.READINESS: container.readiness_probe,
        ProbeKind.LIVENESS: container.liveness_probe,
    }
    return {kind: probe for kind, probe in every.items() if probe is not None}


def kill_message(pod: FullPod, container: FullContainer, kind: ProbeKind, *, is_sidecar: bool) -> str:
    """The message of the event Killing."""
    why = f"failed {kind.value.lower()} probe"
    if is_sidecar:
        return f"Init container {container.name} {why}"
    policy = container.restart_policy or pod.spec.restart_policy
    return f"Container {container.name} {why}{'' if policy == 'Never' else ', will be restarted'}"


def kill_grace_s(pod: FullPod, probe: FullProbe) -> float:
    """The grace period of a container that a probe kills."""
    own, of_pod = probe.termination_grace_period_seconds, pod.spec.termination_grace_period_seconds
    if own is not None:
        return float(own)
    return float(of_pod) if of_pod is not None else GRACE_S
