"""Table columns of pods.

1. The status is derived from the phase, the conditions and the container states. Later findings replace earlier ones,
   and the first container is evaluated last.
2. Restarts of init containers count until the pod is initialized, those of sidecars always.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.document import Document
from mooring.apiserver.tables.cells import NONE, age, since
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column, wide
from mooring.kit.clock import parse_rfc3339

_UNREACHABLE = "NodeLost"
_SUCCEEDED: Document = {
    "type": "Completed",
    "status": "True",
    "reason": "Succeeded",
    "message": "The pod has completed successfully.",
}
_FAILED: Document = {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}


@dataclass(slots=True)
class _Restarts:
    count: int = 0
    last: str = ""

    def add(self, container: Document) -> None:
        self.count += container.get("restartCount", 0)
        finished = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if finished and (not self.last or parse_rfc3339(self.last) < parse_rfc3339(finished)):
            self.last = finished

    def text(self, now_s: float) -> str:
        return f"{self.count} ({since(self.last, now_s)} ago)" if self.count and self.last else str(self.count)


@dataclass(slots=True)
class _Findings:
    """What has been found out about a pod so far."""

    reason: str
    ready: int = 0
    is_initializing: bool = False


def _pod_cells(pod: Document, now_s: float) -> list[Cell]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    conditions = status.get("conditions") or ()
    found = _Findings(status.get("reason") or status.get("phase", ""))
    if any(each["type"] == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in conditions):
        found.reason = "SchedulingGated"
    init_containers = spec.get("initContainers") or ()
    sidecars = {each["name"] for each in init_containers if each.get("restartPolicy") == "Always"}
    restarts, sidecar_restarts = _look_at_init(status, len(init_containers), sidecars, found)
    if not found.is_initializing or _holds(conditions, "Initialized"):
        restarts = sidecar_restarts
        _look_at_containers(status, conditions, found, restarts)
    total = len(spec.get("containers") or ()) + len(sidecars)
    return [
        pod["metadata"]["name"],
        f"{found.ready}/{total}",
        _reason_of_deleted(pod, status) or found.reason,
        restarts.text(now_s),
        age(pod, now_s),
        ((status.get("podIPs") or [{}])[0]).get("ip") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, conditions),
    ]


def _look_at_init(status: Document, count: int, sidecars: set[str], found: _Findings) -> tuple[_Restarts, _Restarts]:
    """Up to the first init container that is not done; the restarts of all, and of sidecars alone."""
    restarts, sidecar_restarts = _Restarts(), _Restarts()
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        is_sidecar = container["name"] in sidecars
        restarts.add(container)
        if is_sidecar:
            sidecar_restarts.add(container)
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            found.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            found.reason = f"Init:{_end(terminated)}"
        elif waiting is not None and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            found.reason = f"Init:{waiting['reason']}"
        else:
            found.reason = f"Init:{index}/{count}"
        found.is_initializing = True
        break
    return restarts, sidecar_restarts


def _look_at_containers(
    status: Document, conditions: list[Document] | tuple[()], found: _Findings, restarts: _Restarts
) -> None:
    is_any_running, error = False, ""
    for container in reversed(status.get("containerStatuses") or ()):
        restarts.add(container)
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if waiting is not None and waiting.get("reason"):
            found.reason = waiting["reason"]
        elif terminated is not None:
            found.reason = _end(terminated)
            if terminated.get("exitCode"):
                error = found.reason
        elif container.get("ready") and state.get("running") is not None:
            is_any_running = True
            found.ready += 1
    if found.reason == "Completed":
        # One container is done, but that is not the whole pod.
        if is_any_running and _holds(conditions, "Ready", any_of_them=True):
            found.reason = "Running"
        elif error:
            found.reason = error
        elif is_any_running:
            found.reason = "NotReady"


def _end(terminated: Document) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _reason_of_deleted(pod: Document, status: Document) -> str:
    if not pod["metadata"].get("deletionTimestamp"):
        return ""
    if status.get("reason") == _UNREACHABLE:
        return "Unknown"
    return "" if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _readiness_gates(spec: Document, conditions: list[Document] | tuple[()]) -> str:
    gates = spec.get("readinessGates")
    if not gates:
        return NONE
    return f"{sum(_holds(conditions, gate['conditionType']) for gate in gates)}/{len(gates)}"


def _holds(conditions: list[Document] | tuple[()], name: str, *, any_of_them: bool = False) -> bool:
    """Whether the first condition of this name is true, or any of that name."""
    found = [each.get("status") == "True" for each in conditions if each["type"] == name]
    return any(found if any_of_them else found[:1])


def _pod_row_conditions(pod: Document) -> list[Document] | None:
    match (pod.get("status") or {}).get("phase"):
        case "Succeeded":
            return [_SUCCEEDED]
        case "Failed":
            return [_FAILED]
        case _:
            return None


POD_TABLE = KindTable(
    (
        NAME,
        column("Ready", "How many of its containers are ready, of how many."),
        column("Status", "What it does or what it lacks, in one word."),
        column("Restarts", "How often its containers were started again, and when the last time was."),
        AGE,
        wide("IP", "Its address in the cluster."),
        wide("Node", "Where it runs."),
        wide("Nominated Node", "Where room is being made for it."),
        wide("Readiness Gates", "How many of the conditions that others set for it hold."),
    ),
    _pod_cells,
    _pod_row_conditions,
)
