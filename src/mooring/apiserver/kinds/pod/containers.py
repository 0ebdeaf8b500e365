"""Validation of containers, init containers and ephemeral containers.

1. Names are unique over all three lists. The later list reports a duplicate.
2. Host ports conflict among the ordinary containers. Init containers run one at a time, so their ports conflict only
   within one container.
3. `stopSignal` has no rule: its feature gate is off in v1.36, and the field is dropped before validation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.environment import (
    validate_devices,
    validate_environment,
    validate_environment_imports,
    validate_mounts,
)
from mooring.apiserver.kinds.pod.options import PodOptions
from mooring.apiserver.kinds.pod.resources import validate_resource_requirements
from mooring.apiserver.kinds.pod.security import validate_security_context
from mooring.apiserver.validation.fields import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from mooring.apiserver.validation.names import http_header_name_errors, port_name_errors, port_number_errors
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules, validate_required_enum

_CONTAINER = struct_rules("core", "Container")
_PORT = struct_rules("core", "ContainerPort")
_PROBE = struct_rules("core", "Probe")
_EXEC = struct_rules("core", "ExecAction")
_HTTP_GET = struct_rules("core", "HTTPGetAction")
_RESTART_RULE = struct_rules("core", "ContainerRestartRule")
_EXIT_CODES = struct_rules("core", "ContainerRestartRuleOnExitCodes")

_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")

RESTART_RULES_MAX = 20
EXIT_CODES_MAX = 255

_RESTART_POLICIES = sorted_enum_values("core", "RestartPolicy")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")

_NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
_EPHEMERAL_FORBIDDEN = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


def validate_probes(container: Document, path: str) -> list[FieldError]:
    """Field errors of the probes of a container."""
    errors: list[FieldError] = []
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(kind)
        if probe is None:
            continue
        here = f"{path}.{kind}"
        errors += _validate_handler(probe, _PROBE_HANDLERS, None, here) + _PROBE.validate(probe, here)
        if kind == "readinessProbe":
            grace_s = probe.get("terminationGracePeriodSeconds")
            if grace_s is not None:
                detail = "must not be set for readinessProbes"
                errors.append(invalid(f"{here}.terminationGracePeriodSeconds", grace_s, detail))
        elif probe.get("successThreshold", 0) != 1:
            errors.append(invalid(f"{here}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return errors


def validate_lifecycle(lifecycle: Document | None, grace_s: int | None, path: str) -> list[FieldError]:
    """Field errors of the hooks of a container."""
    if lifecycle is None:
        return []
    errors: list[FieldError] = []
    for kind in ("postStart", "preStop"):
        if lifecycle.get(kind) is not None:
            errors += _validate_handler(lifecycle[kind], _HOOK_HANDLERS, grace_s, f"{path}.{kind}")
    return errors


def validate_port(port: object, path: str) -> list[FieldError]:
    """A port by number or by name."""
    if isinstance(port, str):
        return [invalid(path, port, text) for text in port_name_errors(port)]
    number = port if isinstance(port, int) else 0
    return [invalid(path, number, text) for text in port_number_errors(number)]


def _validate_handler(handler: Document, kinds: tuple[str, ...], grace_s: int | None, path: str) -> list[FieldError]:
    """A probe or hook has exactly one handler."""
    errors: list[FieldError] = []
    is_given = False
    for kind in kinds:
        action = handler.get(kind)
        if action is None:
            continue
        if is_given:
            errors.append(forbidden(f"{path}.{kind}", "may not specify more than 1 handler type"))
        else:
            is_given = True
            errors += _validate_action(kind, action, grace_s, f"{path}.{kind}")
    if not is_given:
        errors.append(required(path, "must specify a handler type"))
    return errors


def _validate_action(kind: str, action: Document, grace_s: int | None, path: str) -> list[FieldError]:
    match kind:
        case "exec":
            return _EXEC.validate(action, path)
        case "httpGet":
            return _validate_http(action, path)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace_s is None or 0 <= seconds <= grace_s:
                return []
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
            return [invalid(path, seconds, detail)]
        case _:
            return validate_port(action.get("port", 0), f"{path}.port")


def _validate_http(action: Document, path: str) -> list[FieldError]:
    errors = _HTTP_GET.validate(action, path, "path")
    errors += validate_port(action.get("port", 0), f"{path}.port")
    errors += _HTTP_GET.validate(action, path, "scheme")
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        errors += [invalid(f"{path}.httpHeaders", name, text) for text in http_header_name_errors(name)]
    return errors


def validate_container(container: Document, ground: ContainerValidation, path: str) -> list[FieldError]:
    """Field errors of a container of any sort."""
    errors = _CONTAINER.validate(container, path, "name", "image", "terminationMessagePolicy")
    if container.get("ports"):
        errors += _validate_container_ports(container["ports"], f"{path}.ports")
    if container.get("env"):
        errors += validate_environment(container["env"], f"{path}.env")
    if container.get("envFrom"):
        errors += validate_environment_imports(container["envFrom"], f"{path}.envFrom")
    errors += validate_mounts(container, ground.volumes, f"{path}.volumeMounts")
    errors += validate_devices(container, ground.volumes, f"{path}.volumeDevices")
    errors += _CONTAINER.validate(container, path, "imagePullPolicy")
    resources = container.get("resources")
    if resources:
        errors += validate_resource_requirements(resources, f"{path}.resources", ground.claim_names, ground.options)
    if container.get("resizePolicy"):
        errors += _validate_resize_policy(container["resizePolicy"], ground.restart_policy, f"{path}.resizePolicy")
    context = container.get("securityContext")
    if context is not None:
        errors += validate_security_context(context, ground.uses_host_users, f"{path}.securityContext")
    return errors


def validate_container_image_space(container: Document, path: str) -> list[FieldError]:
    """Templates may hold anything in place of an image; a pod may not."""
    image = container.get("image", "")
    if image == image.strip():
        return []
    return [invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def validate_restart_policy(container: Document, path: str, is_init: bool = False) -> list[FieldError]:
    """Field errors of the restart policy of a container itself. Rules of an init container without a policy are not
    validated."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    errors: list[FieldError] = []
    if policy is None:
        if not rules:
            return []
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
        if is_init:
            return errors
    elif policy not in _RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    if len(rules) > RESTART_RULES_MAX:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), RESTART_RULES_MAX))
    for index, rule in enumerate(rules):
        errors += _validate_restart_rule(rule, f"{path}.restartPolicyRules[{index}]")
    return errors


def _validate_container_ports(ports: Sequence[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name")
        if name:
            texts = port_name_errors(name)
            errors += [invalid(f"{here}.name", name, text) for text in texts]
            if not texts and name in names:
                errors.append(duplicate(f"{here}.name", name))
            if not texts:
                names.add(name)
        errors += _PORT.validate(port, here, "containerPort", "hostPort", "protocol")
    return errors


def _validate_resize_policy(policies: Sequence[Document], pod_policy: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in names:
            errors.append(duplicate(f"{path}[{index}]", name))
        names.add(name)
        errors += validate_required_enum(name, ("cpu", "memory"), path)
        errors += validate_required_enum(restart, _RESIZE_POLICIES, path)
        if pod_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, restart, detail))
    return errors


def _validate_restart_rule(rule: Document, path: str) -> list[FieldError]:
    errors, codes = _RESTART_RULE.validate(rule, path), rule.get("exitCodes")
    if codes is None:
        return [*errors, required(f"{path}.exitCodes", "must be specified")]
    values = codes.get("values") or ()
    errors += _EXIT_CODES.validate(codes, f"{path}.exitCodes")
    if len(values) > EXIT_CODES_MAX:
        errors.append(too_many(f"{path}.exitCodes.values", len(values), EXIT_CODES_MAX))
    return errors


@dataclass(frozen=True, slots=True)
class ContainerValidation:
    """Facts about the pod that the validation of containers needs."""

    volumes: Mapping[str, Document]
    """The volumes without errors, by name."""
    claim_names: Collection[str]
    grace_s: int | None
    restart_policy: str
    uses_host_users: bool
    options: PodOptions


def validate_ordinary_containers(
    containers: Sequence[Document], ground: ContainerValidation, path: str
) -> list[FieldError]:
    if not containers:
        return [required(path)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, container in enumerate(containers):
        here, name = f"{path}[{index}]", container.get("name", "")
        errors += validate_container(container, ground, here)
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        names.add(name)
        errors += validate_lifecycle(container.get("lifecycle"), ground.grace_s, f"{here}.lifecycle")
        errors += validate_probes(container, here)
        errors += validate_restart_policy(container, here)
    return errors + _validate_host_port(containers, path)


def validate_init_containers(spec: Document, ground: ContainerValidation, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names = {container.get("name", "") for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        here, name = f"{path}[{index}]", container.get("name", "")
        errors += validate_container(container, ground, here)
        errors += validate_restart_policy(container, here, is_init=True)
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        elif name:
            names.add(name)
        errors += _validate_host_port([container], path)
        is_sidecar = container.get("restartPolicy") == "Always"
        if is_sidecar:
            errors += validate_lifecycle(container.get("lifecycle"), ground.grace_s, f"{here}.lifecycle")
            errors += validate_probes(container, here)
        else:
            errors += [
                forbidden(f"{here}.{field}", _NOT_FOR_INIT)
                for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
                if container.get(field) is not None
            ]
        if not is_sidecar and not ground.options.tolerates_init_resize_restart:
            errors += _validate_init_resize(container, here)
    return errors


def validate_ephemeral_containers(spec: Document, ground: ContainerValidation, path: str) -> list[FieldError]:
    containers: Sequence[Document] = spec.get("ephemeralContainers") or ()
    if not containers:
        return []
    errors: list[FieldError] = []
    lasting = {
        container.get("name", "") for kind in ("containers", "initContainers") for container in spec.get(kind) or ()
    }
    names = set(lasting)
    for index, container in enumerate(containers):
        here, name, target = f"{path}[{index}]", container.get("name", ""), container.get("targetContainerName")
        errors += validate_container(container, ground, here)
        errors += validate_container_image_space(container, here)
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        names.add(name)
        if target and target not in lasting:
            errors.append(not_found(f"{here}.targetContainerName", target))
        errors += [
            forbidden(f"{here}.{field}", _NOT_EPHEMERAL) for field in _EPHEMERAL_FORBIDDEN if container.get(field)
        ]
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            errors += [
                forbidden(f"{here}.volumeMounts[{position}].{field}", _NOT_EPHEMERAL)
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
    return errors


def _validate_host_port(containers: Sequence[Document], path: str) -> list[FieldError]:
    """Two ports of the same protocol and address on the host. Each list counts its containers from 0."""
    errors: list[FieldError] = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in taken:
                errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
            taken.add(key)
    return errors


def _validate_init_resize(container: Document, path: str) -> list[FieldError]:
    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", detail)
        for index, policy in enumerate(container.get("resizePolicy") or ())
        if policy.get("restartPolicy") == "RestartContainer"
    ]
