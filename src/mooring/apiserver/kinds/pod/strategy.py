"""Pod (v1): table columns, and the strategy of the pod and of its subresources.

1. The spec changes only as `update.py` allows. A subresource discards all other changes.
2. A pod terminates gracefully, unless it has no kubelet or has terminated already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import default_pod, default_rest_of_pod, default_spec_of_pod
from mooring.apiserver.kinds.pod.options import STRICT_POD
from mooring.apiserver.kinds.pod.prepare import (
    drop_disabled_spec_fields,
    drop_disabled_status_fields,
    merge_label_keys,
    move_apparmor_annotations,
    note_gates,
)
from mooring.apiserver.kinds.pod.resources import quality_of_service
from mooring.apiserver.kinds.pod.spec import validate_new_pod
from mooring.apiserver.kinds.pod.status import validate_pod_status
from mooring.apiserver.kinds.pod.update import (
    is_static,
    leaves_spec,
    options_after,
    validate_annotations_only,
    validate_ephemeral_containers_update,
    validate_pod_update,
    validate_resize,
    validate_static,
)
from mooring.apiserver.kinds.pod.warnings import name_warnings, pod_spec_warnings
from mooring.apiserver.registry.spec_cache import SpecCache, SpecInputs, ValidationResult
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep, keep_metadata
from mooring.apiserver.tables import AGE, NAME, NONE, Cell, KindTable, age, column, since, wide
from mooring.apiserver.validation.addresses import ip_warnings
from mooring.apiserver.validation.fields import FieldError
from mooring.kit.clock import parse_rfc3339

# --- table ----------------------------------------------------------------------------------------------------


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
class _PodState:
    """The state of a pod for its table row."""

    reason: str
    ready: int = 0
    is_initializing: bool = False


def _pod_cells(pod: Document, now_s: float) -> list[Cell]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    conditions = status.get("conditions") or ()
    found = _PodState(status.get("reason") or status.get("phase", ""))
    if any(
        condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated" for condition in conditions
    ):
        found.reason = "SchedulingGated"
    init_containers = spec.get("initContainers") or ()
    sidecars = {
        init_container["name"] for init_container in init_containers if init_container.get("restartPolicy") == "Always"
    }
    restarts, sidecar_restarts = _init_state(status, len(init_containers), sidecars, found)
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


def _init_state(status: Document, count: int, sidecars: set[str], found: _PodState) -> tuple[_Restarts, _Restarts]:
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
    status: Document, conditions: list[Document] | tuple[()], found: _PodState, restarts: _Restarts
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
    found = [condition.get("status") == "True" for condition in conditions if condition["type"] == name]
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


_ENDED = ("Failed", "Succeeded")


class PodStrategy(Strategy):
    """How pods are created, changed, deleted and selected."""

    counts_changes_of_meaning = True
    table = POD_TABLE

    shares_parts = True

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.specs: SpecCache = SpecCache()
        self._subresources: Mapping[str, Strategy] = {
            "status": PodStatusStrategy(kind, self),
            "ephemeralcontainers": PodEphemeralContainersStrategy(kind, self),
            "resize": PodResizeStrategy(kind, self),
        }

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return self._subresources

    def default(self, obj: Document) -> None:
        default_pod(obj)

    def default_spec(self, spec: Document) -> None:
        default_spec_of_pod(spec)

    def default_rest(self, obj: Document) -> None:
        default_rest_of_pod(obj)

    def default_update(self, obj: Document, old: Document) -> None:
        if obj["spec"] is not old["spec"]:
            default_spec_of_pod(obj["spec"])
        default_rest_of_pod(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["metadata"]["generation"] = 1
        given = (obj.get("status") or {}).get("qosClass")  # as in Kubernetes, a given class is not computed again
        obj["status"] = {"phase": "Pending", "qosClass": given or quality_of_service(obj["spec"])}
        drop_disabled_spec_fields(obj["spec"], None)
        note_gates(obj, call.now)
        merge_label_keys(obj)
        move_apparmor_annotations(obj, call)

    def validate_create(self, obj: Document, call: Call) -> ValidationResult:
        """One lookup in the spec cache gives both the errors and the warnings of the spec."""
        of_spec = self.specs.validated(_spec_inputs(obj), _validated)
        errors = [*self.validate_meta(obj), *of_spec.errors]
        return ValidationResult(errors, () if errors else [*_pod_name_warnings(obj), *of_spec.warnings])

    def validate(self, obj: Document, call: Call) -> list[FieldError]:
        return [*self.validate_create(obj, call).errors]

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return [*self.validate_create(obj, call).warnings]

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        if obj["spec"] is not old["spec"]:
            drop_disabled_spec_fields(obj["spec"], old["spec"])
            self.count_generation(obj, old)

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As in Kubernetes, the metadata is validated a second time, as for a new pod."""
        errors = self.validate_meta(obj, old)
        if leaves_spec(obj, old):
            return errors + validate_annotations_only(obj, old)
        return errors + validate_pod_update(obj, old, options_after(old, is_pod=True))

    def graceful_s(self, obj: Document, requested_s: int | None, call: Call) -> int | None:
        spec = obj["spec"]
        period_s = requested_s if requested_s is not None else spec.get("terminationGracePeriodSeconds") or 0
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in _ENDED:
            return 0
        return period_s if period_s >= 0 else 1

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        """`spec.host` is an alias of `spec.nodeName`; `status.podIPs` is selectable and always empty."""
        spec, status = obj["spec"], obj.get("status") or {}
        addresses = status.get("podIPs") or ()
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.host": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": addresses[0].get("ip", "") if addresses else "",
            "status.podIPs": "",
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }


class PodStatusStrategy(StatusStrategy):
    """How kubelets and the scheduler write the status of a pod."""

    reset_fields = (("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        # Old kubelets broke owner references when they wrote a status.
        for field in ("deletionTimestamp", "ownerReferences"):
            keep(obj["metadata"], old["metadata"], field)
        status, old_status = obj.setdefault("status", {}), old.get("status") or {}
        for field in ("qosClass", "observedGeneration"):
            if not status.get(field) and old_status.get(field):
                status[field] = old_status[field]
        _keep_condition_generations(status.get("conditions") or (), old_status.get("conditions") or ())
        drop_disabled_status_fields(status, old_status)

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        # Only annotations are validated again, and most pods have none. Computing the options is expensive.
        options = options_after(old, is_pod=True) if obj["metadata"].get("annotations") else STRICT_POD
        return validate_pod_status(obj, old, options)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        warnings: list[str] = []
        for field in ("podIPs", "hostIPs"):
            for index, address in enumerate(obj["status"].get(field) or ()):
                warnings += ip_warnings(address.get("ip", ""), f"status.{field}[{index}].ip")
        return warnings


class PodEphemeralContainersStrategy(StatusStrategy):
    """How containers are added to a pod that runs."""

    @property
    def ignored_fields(self) -> Sequence[tuple[str, ...]]:
        """None: a client that writes an ignored field becomes its manager, as in kube-apiserver."""
        return ()

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        spec = dict(old["spec"])
        keep(spec, obj["spec"], "ephemeralContainers")
        obj["spec"] = spec
        _keep_all_but_spec(obj, old)
        drop_disabled_spec_fields(obj["spec"], old["spec"])
        self.main.count_generation(obj, old)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        if is_static(old):
            return validate_static("static pods do not support ephemeral containers")
        errors = self.validate_meta_update(obj, old) + self.validate_meta(obj)
        return errors + validate_ephemeral_containers_update(obj, old, options_after(old, is_pod=True))


class PodResizeStrategy(StatusStrategy):
    """How the resources of a pod that runs are changed."""

    @property
    def ignored_fields(self) -> Sequence[tuple[str, ...]]:
        """None, as for ephemeral containers."""
        return ()

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        new_spec, old_spec = obj["spec"], old["spec"]
        kinds = ("containers", "initContainers")
        if all(len(new_spec.get(kind) or ()) == len(old_spec.get(kind) or ()) for kind in kinds):
            spec = dict(old_spec)
            keep(spec, new_spec, "resources")
            for kind in kinds:
                if new_spec.get(kind):
                    spec[kind] = _resized(new_spec[kind], old_spec[kind])
            obj["spec"] = spec
            _keep_all_but_spec(obj, old)
        drop_disabled_spec_fields(obj["spec"], old_spec)
        self.main.count_generation(obj, old)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        if is_static(old):
            return validate_static("static pods cannot be resized")
        if (old["spec"].get("os") or {}).get("name") == "windows":
            return validate_static("windows pods cannot be resized")
        errors = self.validate_meta_update(obj, old) + self.validate_meta(obj)
        return errors + validate_resize(obj, old, options_after(old, is_pod=True))


def _spec_inputs(pod: Document) -> SpecInputs:
    """Inputs of the spec's validation besides the spec: annotations, and the name if claims use it."""
    spec, metadata = pod["spec"], pod["metadata"]
    inputs: Document = {}
    if metadata.get("annotations"):
        inputs["annotations"] = metadata["annotations"]
    if any(volume.get("ephemeral") is not None for volume in spec.get("volumes") or ()):
        inputs["name"] = metadata.get("name", "")
    return SpecInputs(spec, inputs)


def _validated(inputs: SpecInputs) -> ValidationResult:
    errors = validate_new_pod(inputs.spec, inputs.metadata)
    return ValidationResult(errors, () if errors else pod_spec_warnings(inputs.spec, inputs.metadata))


def _pod_name_warnings(pod: Document) -> list[str]:
    use = "this is used in the Pod's hostname, which can result in surprising behavior"
    return name_warnings(pod["metadata"].get("name", ""), use)


def _keep_all_but_spec(obj: Document, old: Document) -> None:
    keep(obj, old, "status")
    keep_metadata(obj, old)


def _keep_condition_generations(conditions: Sequence[Document], old: Sequence[Document]) -> None:
    """Keep `observedGeneration` of a condition that a client writes without it."""
    known: dict[str, deque[int]] = {}
    for condition in old:
        known.setdefault(condition.get("type", ""), deque()).append(condition.get("observedGeneration", 0))
    for condition in conditions:
        generations = known.get(condition.get("type", ""))
        generation = generations.popleft() if generations else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def _resized(containers: Sequence[Document], old: Sequence[Document]) -> Sequence[Document]:
    """The old containers with new resources. Other containers stay as they are: validation rejects them."""
    if any(container.get("name") != was.get("name") for container, was in zip(containers, old, strict=True)):
        return containers
    resized = []
    for container, was in zip(containers, old, strict=True):
        made = {**was, "resources": container.get("resources") or {}}
        keep(made, container, "resizePolicy")
        resized.append(made)
    return resized


STRATEGY = PodStrategy
