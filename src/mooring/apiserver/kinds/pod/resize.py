"""Validation of a change of a running pod's resources.

1. Amounts of cpu and memory may change. No request or limit may be removed, and the QoS class stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.options import PodOptions
from mooring.apiserver.kinds.pod.resources import quality_of_service
from mooring.apiserver.kinds.pod.spec import validate_pod
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid
from mooring.apiserver.validation.values import means_the_same

_RESIZABLE = ("cpu", "memory")
_ONLY_THESE = "only cpu and memory resources are mutable"


def validate_resize(pod: Document, old: Document, options: PodOptions) -> list[FieldError]:
    """Field errors of a resize, apart from the metadata."""
    spec, old_spec, old_status = pod["spec"], old["spec"], old.get("status") or {}
    errors = validate_pod(pod, options)
    old_quality = old_status.get("qosClass") or quality_of_service(old_spec)
    if old_quality != quality_of_service(spec):
        shown = (pod.get("status") or {}).get("qosClass", "")
        errors.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    if not _node_can_resize(old_status):
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    rest = dict(spec)
    if _amounts_count(spec) or _amounts_count(old_spec):
        errors += _validate_pod_level(rest, old_spec)
    ordering = _validate_ordering(spec, old_spec)
    if ordering:
        return errors + ordering
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            path = f"spec.{kind}[{index}].resources"
            errors += _validate_removal(container, old_spec[kind][index], path)
    errors += _validate_ordinary(rest, old_spec)
    errors += _validate_init(rest, old_spec)
    if not errors and not means_the_same(rest, old_spec, "core", "PodSpec"):
        errors.append(forbidden("spec", _ONLY_THESE))
    return errors


# --- containers -------------------------------------------------------------------------------------------------


def _validate_ordering(spec: Document, old: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    for kind in ("containers", "initContainers"):
        new_list, old_list = spec.get(kind) or (), old.get(kind) or ()
        if len(new_list) != len(old_list):
            errors.append(forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize"))
            continue
        errors += [
            forbidden(f"spec.{kind}[{index}].name", f"{kind} may not be renamed or reordered on resize")
            for index, (container, was) in enumerate(zip(new_list, old_list, strict=True))
            if container.get("name", "") != was.get("name", "")
        ]
    return errors


def _validate_removal(container: Document, old: Document, path: str) -> list[FieldError]:
    resources, old_resources = container.get("resources") or {}, old.get("resources") or {}
    return [
        forbidden(f"{path}.{side}", f"resource {side} cannot be removed")
        for side in ("requests", "limits")
        if _are_removed(resources.get(side) or {}, old_resources.get(side) or {})
    ]


def _validate_ordinary(rest: Document, old: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    containers = []
    for container, was in zip(rest.get("containers") or (), old.get("containers") or (), strict=True):
        left = _without_resize(container, was)
        if not means_the_same(left, was, "core", "Container"):
            errors.append(forbidden("spec", _ONLY_THESE))
        containers.append(left)
    rest["containers"] = containers
    return errors


def _validate_init(rest: Document, old: Document) -> list[FieldError]:
    if not rest.get("initContainers"):
        return []
    errors: list[FieldError] = []
    containers = []
    for index, (container, was) in enumerate(zip(rest["initContainers"], old["initContainers"], strict=True)):
        path = f"spec.initContainers[{index}]"
        left = _without_resize(container, was)
        if not means_the_same(left, was, "core", "Container"):
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            errors.append(forbidden(path, detail))
        is_plain = container.get("restartPolicy") != "Always"
        if is_plain and not means_the_same(container, was, "core", "Container"):
            detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            errors += [
                forbidden(path, detail)
                for policy in container.get("resizePolicy") or ()
                if policy.get("restartPolicy") == "RestartContainer"
            ]
        containers.append(left)
    rest["initContainers"] = containers
    return errors


def _without_resize(container: Document, old: Document) -> Document:
    """A container with the cpu and memory that it had. Claims are not carried over; Kubernetes forgets them too."""
    resources, old_resources = container.get("resources") or {}, old.get("resources") or {}
    left: Document = {}
    for side in ("limits", "requests"):
        amounts = _without_changes(resources.get(side) or {}, old_resources.get(side) or {})
        if amounts:
            left[side] = amounts
    return {**container, "resources": left}


# --- the pod as a whole -----------------------------------------------------------------------------------------


def _amounts_count(spec: Document) -> int:
    resources = spec.get("resources") or {}
    return len(resources.get("requests") or {}) + len(resources.get("limits") or {})


def _validate_pod_level(rest: Document, old: Document) -> list[FieldError]:
    new_resources, old_resources = rest.get("resources"), old.get("resources")
    if old_resources is not None and new_resources is None:
        return [forbidden("spec.resources", "pod-level resources cannot be removed")]
    errors: list[FieldError] = []
    resources = dict(new_resources or {})
    for side in ("requests", "limits"):
        was = (old_resources or {}).get(side) or {}
        if _are_removed(resources.get(side) or {}, was):
            errors.append(forbidden(f"spec.resources.{side}", f"pod-level resource {side} cannot be removed"))
        amounts = _without_changes(resources.get(side) or {}, was)
        resources.pop(side, None)
        if amounts:
            resources[side] = amounts
    if old_resources is None and not resources:
        rest.pop("resources", None)
    else:
        rest["resources"] = resources
    if not means_the_same(rest.get("resources"), old_resources, "core", "ResourceRequirements"):
        errors.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    return errors


# --- amounts ----------------------------------------------------------------------------------------------------


def _node_can_resize(old_status: Document) -> bool:
    """A kubelet that can resize reports the resources of what it runs."""
    running = (
        each
        for each in old_status.get("containerStatuses") or ()
        if (each.get("state") or {}).get("running") is not None
    )
    first = next(running, None)
    return first is None or first.get("resources") is not None


def _are_removed(amounts: Mapping[str, str], old: Mapping[str, str]) -> bool:
    return any(name not in amounts for name in old)


def _without_changes(amounts: Mapping[str, str], old: Mapping[str, str]) -> dict[str, str]:
    left = {name: amount for name, amount in amounts.items() if name not in _RESIZABLE}
    left.update({name: amount for name, amount in old.items() if name in _RESIZABLE})
    return left
