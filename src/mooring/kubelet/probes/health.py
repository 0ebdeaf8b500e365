"""The health of one run of a container: what follows from the answers of its probes.

Comes in   answers, one after the other
Goes out   whether it is started and ready; whether it is to be killed

    startup    nobody else is asked before it succeeds; it fails `failureThreshold` times in a row: killed
    readiness  ready after `successThreshold` successes in a row, unready after `failureThreshold` failures
    liveness   it fails `failureThreshold` times in a row: killed

 1. A container without a startup probe is started at once, and without a readiness probe it is ready as soon as it is
    started.
 2. Who is to be killed is not asked again whether it lives: this run is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mooring.kubelet.full_views import WholeContainer, WholePod, WholeProbe

GRACE_S = 30.0
"""Of a pod that names none; the API server writes it into every pod."""


class ProbeKind(Enum):
    """What is asked; the value stands in events."""

    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"


@dataclass(frozen=True, slots=True)
class Health:
    is_ready: bool
    is_started: bool


@dataclass(slots=True)
class _Count:
    was_success: bool | None = None
    times: int = 0


class RunHealth:
    """One run of a container."""

    def __init__(self, container: WholeContainer) -> None:
        self._probes = probes_of(container)
        self._counts = {kind: _Count() for kind in self._probes}
        self._held: set[ProbeKind] = set()
        self._is_started = ProbeKind.STARTUP not in self._probes
        self._is_ready = ProbeKind.READINESS not in self._probes

    @property
    def health(self) -> Health:
        return Health(self._is_started and self._is_ready, self._is_started)

    def wants(self, kind: ProbeKind, elapsed_s: float) -> bool:
        """Whether to ask now, so long after the start."""
        if kind in self._held or int(elapsed_s) < self._probes[kind].initial_delay_seconds:
            return False
        return self._is_started is (kind is not ProbeKind.STARTUP)

    def hold(self, kind: ProbeKind) -> None:
        """Ask this no more."""
        self._held.add(kind)

    def count(self, kind: ProbeKind, *, is_success: bool) -> bool:
        """One more answer. Says whether the container is to be killed for it."""
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


def first_health(container: WholeContainer) -> Health:
    """What is told of a container that just started."""
    return RunHealth(container).health


def probes_of(container: WholeContainer) -> dict[ProbeKind, WholeProbe]:
    every = {
        ProbeKind.STARTUP: container.startup_probe,
        ProbeKind.READINESS: container.readiness_probe,
        ProbeKind.LIVENESS: container.liveness_probe,
    }
    return {kind: probe for kind, probe in every.items() if probe is not None}


def kill_message(pod: WholePod, container: WholeContainer, kind: ProbeKind, *, is_sidecar: bool) -> str:
    """Why a container is killed, as the event `Killing` tells it."""
    why = f"failed {kind.value.lower()} probe"
    if is_sidecar:
        return f"Init container {container.name} {why}"
    policy = container.restart_policy or pod.spec.restart_policy
    return f"Container {container.name} {why}{'' if policy == 'Never' else ', will be restarted'}"


def kill_grace_s(pod: WholePod, probe: WholeProbe) -> float:
    """How long a container that is killed for a probe may take to end."""
    own, of_pod = probe.termination_grace_period_seconds, pod.spec.termination_grace_period_seconds
    if own is not None:
        return float(own)
    return float(of_pod) if of_pod is not None else GRACE_S
