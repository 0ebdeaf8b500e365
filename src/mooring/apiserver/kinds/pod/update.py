"""Validation of changes of a pod: its spec, its ephemeral containers, and the resources of a running pod.

1. Images, the deadline (shorter), tolerations (more) and scheduling gates (fewer) may change. All else is immutable.
2. While a pod has scheduling gates, its node selector and node affinity may be tightened.
3. Ephemeral containers may be added, never changed or removed.
4. An update may keep what the stored object violates: `PodOptions` with the relaxed rules.
5. In a resize, amounts of cpu and memory may change. No request or limit may be removed, and the QoS class stays the
   same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.resources import HUGE_PAGES_PREFIX
from mooring.apiserver.kinds.pod.options import STRICT, STRICT_POD, PodOptions, every_container
from mooring.apiserver.kinds.pod.resources import is_whole_pages, quality_of_service
from mooring.apiserver.kinds.pod.scheduling import (
    has_invalid_node_values,
    required_node_selector,
    validate_added_tolerations,
    validate_match_label_keys,
    validate_term_selectors,
)
from mooring.apiserver.kinds.pod.security import validate_host_sysctl
from mooring.apiserver.kinds.pod.spec import (
    DEADLINE_S_MAX,
    MIRROR_ANNOTATION,
    WHOLE_OBJECT,
    has_valid_deletion_cost,
    validate_pod,
    validate_pod_annotations,
    validate_pod_annotations_update,
)
from mooring.apiserver.strategy import keep
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, required
from mooring.apiserver.validation.names import range_errors, validate_unreserved_path
from mooring.apiserver.validation.selectors import validate_label_selector
from mooring.apiserver.validation.values import internal_diff, internal_value, internal_values, means_the_same

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS_PATH = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"

_PATH = "spec.ephemeralContainers"


def options_after(old: Document | None, is_pod: bool) -> PodOptions:
    """The options for an update of a pod or template; strict for a new one."""
    if old is None:
        return STRICT_POD if is_pod else STRICT
    spec: Document = old.get("spec") or {}
    context = spec.get("securityContext") or {}
    has_own_users = spec.get("hostUsers") is False
    constraints = spec.get("topologySpreadConstraints") or ()
    return PodOptions(
        is_pod=is_pod,
        tolerates_deletion_cost=not has_valid_deletion_cost(old.get("metadata", {}).get("annotations") or {}),
        tolerates_affinity_selectors=any(validate_term_selectors(term, "") for term in _affinity_terms(spec)),
        tolerates_node_affinity_values=has_invalid_node_values(required_node_selector(spec)),
        tolerates_spread_selectors=any(
            validate_label_selector(constraint.get("labelSelector"), "") for constraint in constraints
        ),
        tolerates_spread_label_keys=any(validate_match_label_keys(constraint, "") for constraint in constraints),
        tolerates_indivisible_huge_pages=_has_broken_pages(spec),
        tolerates_token_paths=any(validate_unreserved_path(path, "") for path in _token_paths(spec)),
        tolerates_host_sysctls=any(
            validate_host_sysctl(sysctl.get("name", ""), spec, "") for sysctl in context.get("sysctls") or ()
        ),
        tolerates_any_selinux_change_policy=context.get("seLinuxChangePolicy") is not None,
        tolerates_init_resize_restart=_has_init_resize_restart(spec),
        tolerates_devices_with_user_namespaces=has_own_users
        and any(container.get("volumeDevices") for container, _ in every_container(spec, "")),
        tolerates_host_network_with_user_namespaces=has_own_users and bool(spec.get("hostNetwork")),
        tolerates_comparing_tolerations=any(
            toleration.get("operator") in ("Lt", "Gt") for toleration in spec.get("tolerations") or ()
        ),
    )


def _affinity_terms(spec: Document) -> Iterator[Document]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def _has_broken_pages(spec: Document) -> bool:
    lists: list[Mapping[str, str]] = [spec.get("overhead") or {}]
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            resources = container.get("resources") or {}
            lists += [resources.get("limits") or {}, resources.get("requests") or {}]
    return any(
        name.startswith(HUGE_PAGES_PREFIX) and not is_whole_pages(name, raw)
        for amounts in lists
        for name, raw in amounts.items()
    )


def _token_paths(spec: Document) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        for projection in (volume.get("projected") or {}).get("sources") or ():
            if projection.get("serviceAccountToken") is not None:
                yield projection["serviceAccountToken"].get("path", "")


def _has_init_resize_restart(spec: Document) -> bool:
    return any(
        policy.get("restartPolicy") == "RestartContainer"
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") != "Always"
        for policy in container.get("resizePolicy") or ()
    )


_CHANGEABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


def validate_pod_update(pod: Document, old: Document, options: PodOptions) -> list[FieldError]:
    """Field errors of a change of a pod, apart from its metadata."""
    errors = validate_pod(pod, options)
    errors += validate_pod_annotations_update(pod, old, "metadata.annotations", options)
    spec, old_spec = pod["spec"], old["spec"]
    for kind in ("containers", "initContainers"):
        new_list, old_list = spec.get(kind) or (), old_spec.get(kind) or ()
        if len(new_list) != len(old_list):
            return [*errors, forbidden(f"spec.{kind}", "pod updates may not add or remove containers")]
        errors += _validate_images(new_list, f"spec.{kind}")
    deadline = _validate_deadline(spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds"))
    errors += deadline
    if deadline and spec.get("activeDeadlineSeconds") is not None:
        return errors
    new_tolerations, old_tolerations = spec.get("tolerations") or [], old_spec.get("tolerations") or []
    errors += validate_added_tolerations(new_tolerations, old_tolerations, "spec.tolerations", options)
    errors += _validate_changed_gates(spec.get("schedulingGates") or (), old_spec.get("schedulingGates") or ())
    if means_the_same(spec, old_spec, "core", "PodSpec"):
        return errors
    return errors + _validate_other_changes(spec, old_spec)


def leaves_spec(pod: Document, old: Document) -> bool:
    """Whether the spec is unchanged and no other field affects its validation."""
    return pod["spec"] is old["spec"] and MIRROR_ANNOTATION not in (pod["metadata"].get("annotations") or ())


def validate_annotations_only(pod: Document, old: Document) -> list[FieldError]:
    """The same for a pod with an unchanged, valid spec: only annotations are validated."""
    annotations = pod["metadata"].get("annotations") or {}
    if not annotations and not old["metadata"].get("annotations"):
        return []
    options, path = options_after(old, is_pod=True), "metadata.annotations"
    errors = validate_pod_annotations(annotations, pod["spec"], path, options)
    return errors + validate_pod_annotations_update(pod, old, path, options)


# --- mutable fields --------------------------------------------------------------------------------------------


def _validate_images(containers: Sequence[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, container in enumerate(containers):
        image = container.get("image", "")
        if not image:
            errors.append(required(f"{path}[{index}].image"))
        if image != image.strip():
            detail = "must not have leading or trailing whitespace"
            errors.append(invalid(f"{path}[{index}].image", image, detail))
    return errors


def _validate_deadline(new_s: int | None, old_s: int | None) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    if new_s is None:
        detail = "must not update from a positive integer to nil value"
        return [invalid(path, None, detail)] if old_s is not None else []
    texts = range_errors(new_s, 0, DEADLINE_S_MAX)
    if texts:
        return [invalid(path, new_s, text) for text in texts]
    if old_s is not None and old_s < new_s:
        return [invalid(path, new_s, "must be less than or equal to previous value")]
    return []


def _validate_changed_gates(gates: Sequence[Document], old: Sequence[Document]) -> list[FieldError]:
    known = {gate.get("name", "") for gate in old}
    added = {gate.get("name", ""): index for index, gate in enumerate(gates) if gate.get("name", "") not in known}
    detail = "only deletion is allowed, but found new scheduling gate"
    return [forbidden(f"spec.schedulingGates[{index}].name", f"{detail} '{name}'") for name, index in added.items()]


# --- everything else --------------------------------------------------------------------------------------------


def _validate_other_changes(spec: Document, old: Document) -> list[FieldError]:
    """Revert the mutable fields, and report any other change."""
    rest = dict(spec)
    for kind in ("containers", "initContainers"):
        if rest.get(kind):
            pairs = zip(rest[kind], old[kind], strict=True)
            rest[kind] = [{**container, "image": was.get("image", "")} for container, was in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        keep(rest, old, field)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        keep(rest, old, "terminationGracePeriodSeconds")
    errors: list[FieldError] = []
    if old.get("schedulingGates"):
        errors += _validate_node_selector(rest, old)
        errors += _validate_changed_node_affinity(rest, old)
    if not means_the_same(rest, old, "core", "PodSpec"):
        difference = internal_diff(old, rest, "PodSpec")
        errors.append(forbidden("spec", f"pod updates may not change fields other than {_CHANGEABLE}\n{difference}"))
    return errors


def _validate_node_selector(rest: Document, old: Document) -> list[FieldError]:
    new_selector, old_selector = rest.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    keep(rest, old, "nodeSelector")
    if all(new_selector.get(key) == value for key, value in old_selector.items()):
        return []
    detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid("spec.nodeSelector", new_selector or None, detail)]


def _validate_changed_node_affinity(rest: Document, old: Document) -> list[FieldError]:
    new_affinity, old_affinity = rest.get("affinity"), old.get("affinity")
    new_nodes, old_nodes = (new_affinity or {}).get("nodeAffinity"), (old_affinity or {}).get("nodeAffinity")
    if new_nodes == old_nodes:
        return []
    errors = _validate_tightened(new_nodes or {}, old_nodes or {})
    kept = {key: value for key, value in (new_affinity or {}).items() if key != "nodeAffinity"}
    if old_nodes is not None:
        rest["affinity"] = {**kept, "nodeAffinity": old_nodes}
    elif old_affinity is None and not kept:
        rest.pop("affinity", None)
    else:
        rest["affinity"] = kept
    return errors


def _validate_tightened(new: Document, old: Document) -> list[FieldError]:
    """The number of terms is fixed, and each term may only be tightened."""
    old_terms = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    new_terms = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if not old_terms:
        return []
    if len(old_terms) != len(new_terms):
        value = internal_values(new_terms or None, "NodeSelectorTerm")
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(_TERMS_PATH, value, detail)]
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{_TERMS_PATH}[{index}]", internal_value(new_term, "NodeSelectorTerm"), detail)
        for index, (new_term, old_term) in enumerate(zip(new_terms, old_terms, strict=True))
        if not _has_only_additions(new_term, old_term)
    ]


def _has_only_additions(new: Document, old: Document) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        # An empty term matches no node; anything in it would match more.
        return not any(new.get(field) for field in fields)
    return all((new.get(field) or [])[: len(old[field])] == old[field] for field in fields if old.get(field))


def validate_ephemeral_containers_update(pod: Document, old: Document, options: PodOptions) -> list[FieldError]:
    errors = validate_pod(pod, options)
    errors += validate_pod_annotations_update(pod, old, "metadata.annotations", options)
    containers = {
        ephemeral_container.get("name", ""): ephemeral_container
        for ephemeral_container in pod["spec"].get("ephemeralContainers") or ()
    }
    for was in old["spec"].get("ephemeralContainers") or ():
        name = was.get("name", "")
        shown = f"existing ephemeral containers {quoted(name)}"
        if name not in containers:
            errors.append(forbidden(_PATH, f"{shown} may not be removed\n"))
        elif not means_the_same(containers[name], was, "core", "EphemeralContainer"):
            difference = internal_diff(was, containers[name], "EphemeralContainer")
            errors.append(forbidden(_PATH, f"{shown} may not be changed\n{difference}"))
    return errors


def is_static(pod: Document) -> bool:
    """Whether the pod is the mirror of a static pod, which the API cannot change."""
    return MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {})


def validate_static(detail: str) -> list[FieldError]:
    """The only error of a static pod, even if others apply."""
    return [forbidden(WHOLE_OBJECT, detail)]


# --- resize ---------------------------------------------------------------------------------------------------


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
    """A container with its old cpu and memory. Claims are dropped, as in Kubernetes."""
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
        container_status
        for container_status in old_status.get("containerStatuses") or ()
        if (container_status.get("state") or {}).get("running") is not None
    )
    first = next(running, None)
    return first is None or first.get("resources") is not None


def _are_removed(amounts: Mapping[str, str], old: Mapping[str, str]) -> bool:
    return any(name not in amounts for name in old)


def _without_changes(amounts: Mapping[str, str], old: Mapping[str, str]) -> dict[str, str]:
    left = {name: amount for name, amount in amounts.items() if name not in _RESIZABLE}
    left.update({name: amount for name, amount in old.items() if name in _RESIZABLE})
    return left
