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
    devices_faults,
    environment_faults,
    environment_imports_faults,
    mounts_faults,
)
from mooring.apiserver.kinds.pod.options import PodOptions
from mooring.apiserver.kinds.pod.resources import non_negative_faults, resource_requirements_faults
from mooring.apiserver.kinds.pod.security import security_context_faults
from mooring.apiserver.validation.fields import (
    Fault,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from mooring.apiserver.validation.names import (
    dns_label_faults,
    http_header_name_faults,
    port_name_faults,
    port_number_faults,
)

_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")

RESTART_RULES_MAX = 20
EXIT_CODES_MAX = 255

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_RESTART_OPERATORS = ("In", "NotIn")
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


def probes_faults(container: Document, path: str) -> list[Fault]:
    """What is wrong with the probes of a container."""
    faults: list[Fault] = []
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(kind)
        if probe is None:
            continue
        here = f"{path}.{kind}"
        faults += _probe_faults(probe, here)
        if kind == "readinessProbe":
            grace_s = probe.get("terminationGracePeriodSeconds")
            if grace_s is not None:
                detail = "must not be set for readinessProbes"
                faults.append(invalid(f"{here}.terminationGracePeriodSeconds", grace_s, detail))
        elif probe.get("successThreshold", 0) != 1:
            faults.append(invalid(f"{here}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return faults


def lifecycle_faults(lifecycle: Document | None, grace_s: int | None, path: str) -> list[Fault]:
    """What is wrong with the hooks of a container."""
    if lifecycle is None:
        return []
    faults: list[Fault] = []
    for kind in ("postStart", "preStop"):
        if lifecycle.get(kind) is not None:
            faults += _handler_faults(lifecycle[kind], _HOOK_HANDLERS, grace_s, f"{path}.{kind}")
    return faults


def port_faults(port: object, path: str) -> list[Fault]:
    """A port by number or by name."""
    if isinstance(port, str):
        return [invalid(path, port, text) for text in port_name_faults(port)]
    number = port if isinstance(port, int) else 0
    return [invalid(path, number, text) for text in port_number_faults(number)]


# --- parts ------------------------------------------------------------------------------------------------------


def _probe_faults(probe: Document, path: str) -> list[Fault]:
    faults = _handler_faults(probe, _PROBE_HANDLERS, None, path)
    for field in _COUNTS:
        faults += non_negative_faults(probe.get(field, 0), f"{path}.{field}")
    grace_s = probe.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s <= 0:
        faults.append(invalid(f"{path}.terminationGracePeriodSeconds", grace_s, "must be greater than 0"))
    return faults


def _handler_faults(handler: Document, kinds: tuple[str, ...], grace_s: int | None, path: str) -> list[Fault]:
    """Exactly one way to ask, or to act."""
    faults: list[Fault] = []
    is_given = False
    for kind in kinds:
        action = handler.get(kind)
        if action is None:
            continue
        if is_given:
            faults.append(forbidden(f"{path}.{kind}", "may not specify more than 1 handler type"))
        else:
            is_given = True
            faults += _action_faults(kind, action, grace_s, f"{path}.{kind}")
    if not is_given:
        faults.append(required(path, "must specify a handler type"))
    return faults


def _action_faults(kind: str, action: Document, grace_s: int | None, path: str) -> list[Fault]:
    match kind:
        case "exec":
            return [] if action.get("command") else [required(f"{path}.command")]
        case "httpGet":
            return _http_faults(action, path)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace_s is None or 0 <= seconds <= grace_s:
                return []
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
            return [invalid(path, seconds, detail)]
        case _:
            return port_faults(action.get("port", 0), f"{path}.port")


def _http_faults(action: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if not action.get("path"):
        faults.append(required(f"{path}.path"))
    faults += port_faults(action.get("port", 0), f"{path}.port")
    if action.get("scheme", "") not in ("HTTP", "HTTPS"):
        faults.append(not_supported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        faults += [invalid(f"{path}.httpHeaders", name, text) for text in http_header_name_faults(name)]
    return faults


def container_faults(container: Document, ground: PodGround, path: str) -> list[Fault]:
    """What is wrong with a container of any sort."""
    name = container.get("name", "")
    faults = (
        [invalid(f"{path}.name", name, text) for text in dns_label_faults(name)] if name else [required(f"{path}.name")]
    )
    if not container.get("image"):
        faults.append(required(f"{path}.image"))
    faults += _container_choice_faults(
        container.get("terminationMessagePolicy", ""), _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy"
    )
    if container.get("ports"):
        faults += _container_ports_faults(container["ports"], f"{path}.ports")
    if container.get("env"):
        faults += environment_faults(container["env"], f"{path}.env")
    if container.get("envFrom"):
        faults += environment_imports_faults(container["envFrom"], f"{path}.envFrom")
    faults += mounts_faults(container, ground.volumes, f"{path}.volumeMounts")
    faults += devices_faults(container, ground.volumes, f"{path}.volumeDevices")
    faults += pull_policy_faults(container.get("imagePullPolicy", ""), f"{path}.imagePullPolicy")
    resources = container.get("resources")
    if resources:
        faults += resource_requirements_faults(resources, f"{path}.resources", ground.claim_names, ground.options)
    if container.get("resizePolicy"):
        faults += _resize_policy_faults(container["resizePolicy"], ground.restart_policy, f"{path}.resizePolicy")
    context = container.get("securityContext")
    if context is not None:
        faults += security_context_faults(context, ground.uses_host_users, f"{path}.securityContext")
    return faults


def container_image_space_faults(container: Document, path: str) -> list[Fault]:
    """Templates may hold anything in place of an image; a pod may not."""
    image = container.get("image", "")
    if image == image.strip():
        return []
    return [invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def pull_policy_faults(policy: str, path: str) -> list[Fault]:
    return _container_choice_faults(policy, _PULL_POLICIES, path)


def restart_policy_faults(container: Document, path: str, is_init: bool = False) -> list[Fault]:
    """What is wrong with the restart policy of a container itself. Rules of an init container without a policy are not
    looked into."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    faults: list[Fault] = []
    if policy is None:
        if not rules:
            return []
        faults.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
        if is_init:
            return faults
    elif policy not in _RESTART_POLICIES:
        faults.append(not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    if len(rules) > RESTART_RULES_MAX:
        faults.append(too_many(f"{path}.restartPolicyRules", len(rules), RESTART_RULES_MAX))
    for index, rule in enumerate(rules):
        faults += _restart_rule_faults(rule, f"{path}.restartPolicyRules[{index}]")
    return faults


# --- parts ------------------------------------------------------------------------------------------------------


def _container_choice_faults(value: str, choices: Sequence[str], path: str) -> list[Fault]:
    if value in choices:
        return []
    return [not_supported(path, value, choices)] if value else [required(path)]


def _container_ports_faults(ports: Sequence[Document], path: str) -> list[Fault]:
    faults: list[Fault] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name")
        if name:
            texts = port_name_faults(name)
            faults += [invalid(f"{here}.name", name, text) for text in texts]
            if not texts and name in names:
                faults.append(duplicate(f"{here}.name", name))
            if not texts:
                names.add(name)
        number, host_number = port.get("containerPort", 0), port.get("hostPort", 0)
        if not number:
            faults.append(required(f"{here}.containerPort"))
        else:
            faults += [invalid(f"{here}.containerPort", number, text) for text in port_number_faults(number)]
        if host_number:
            faults += [invalid(f"{here}.hostPort", host_number, text) for text in port_number_faults(host_number)]
        faults += _container_choice_faults(port.get("protocol", ""), _PROTOCOLS, f"{here}.protocol")
    return faults


def _resize_policy_faults(policies: Sequence[Document], pod_policy: str, path: str) -> list[Fault]:
    faults: list[Fault] = []
    names: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in names:
            faults.append(duplicate(f"{path}[{index}]", name))
        names.add(name)
        faults += _container_choice_faults(name, ("cpu", "memory"), path)
        faults += _container_choice_faults(restart, _RESIZE_POLICIES, path)
        if pod_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            faults.append(invalid(path, restart, detail))
    return faults


def _restart_rule_faults(rule: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    action, codes = rule.get("action", ""), rule.get("exitCodes")
    if action not in _RESTART_ACTIONS:
        faults.append(not_supported(f"{path}.action", action, _RESTART_ACTIONS))
    if codes is None:
        return [*faults, required(f"{path}.exitCodes", "must be specified")]
    operator, values = codes.get("operator", ""), codes.get("values") or ()
    if operator not in _RESTART_OPERATORS:
        faults.append(not_supported(f"{path}.exitCodes.operator", operator, _RESTART_OPERATORS))
    if len(values) > EXIT_CODES_MAX:
        faults.append(too_many(f"{path}.exitCodes.values", len(values), EXIT_CODES_MAX))
    return faults


@dataclass(frozen=True, slots=True)
class PodGround:
    """What containers stand on: facts about their pod."""

    volumes: Mapping[str, Document]
    """The volumes without faults, by name."""
    claim_names: Collection[str]
    grace_s: int | None
    restart_policy: str
    uses_host_users: bool
    options: PodOptions


def ordinary_containers_faults(containers: Sequence[Document], ground: PodGround, path: str) -> list[Fault]:
    if not containers:
        return [required(path)]
    faults: list[Fault] = []
    names: set[str] = set()
    for index, container in enumerate(containers):
        here, name = f"{path}[{index}]", container.get("name", "")
        faults += container_faults(container, ground, here)
        if name in names:
            faults.append(duplicate(f"{here}.name", name))
        names.add(name)
        faults += lifecycle_faults(container.get("lifecycle"), ground.grace_s, f"{here}.lifecycle")
        faults += probes_faults(container, here)
        faults += restart_policy_faults(container, here)
    return faults + _host_port_faults(containers, path)


def init_containers_faults(spec: Document, ground: PodGround, path: str) -> list[Fault]:
    faults: list[Fault] = []
    names = {container.get("name", "") for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        here, name = f"{path}[{index}]", container.get("name", "")
        faults += container_faults(container, ground, here)
        faults += restart_policy_faults(container, here, is_init=True)
        if name in names:
            faults.append(duplicate(f"{here}.name", name))
        elif name:
            names.add(name)
        faults += _host_port_faults([container], path)
        is_sidecar = container.get("restartPolicy") == "Always"
        if is_sidecar:
            faults += lifecycle_faults(container.get("lifecycle"), ground.grace_s, f"{here}.lifecycle")
            faults += probes_faults(container, here)
        else:
            faults += [
                forbidden(f"{here}.{field}", _NOT_FOR_INIT)
                for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
                if container.get(field) is not None
            ]
        if not is_sidecar and not ground.options.tolerates_init_resize_restart:
            faults += _init_resize_faults(container, here)
    return faults


def ephemeral_containers_faults(spec: Document, ground: PodGround, path: str) -> list[Fault]:
    containers: Sequence[Document] = spec.get("ephemeralContainers") or ()
    if not containers:
        return []
    faults: list[Fault] = []
    lasting = {each.get("name", "") for kind in ("containers", "initContainers") for each in spec.get(kind) or ()}
    names = set(lasting)
    for index, container in enumerate(containers):
        here, name, target = f"{path}[{index}]", container.get("name", ""), container.get("targetContainerName")
        faults += container_faults(container, ground, here)
        faults += container_image_space_faults(container, here)
        if name in names:
            faults.append(duplicate(f"{here}.name", name))
        names.add(name)
        if target and target not in lasting:
            faults.append(not_found(f"{here}.targetContainerName", target))
        faults += [
            forbidden(f"{here}.{field}", _NOT_EPHEMERAL) for field in _EPHEMERAL_FORBIDDEN if container.get(field)
        ]
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            faults += [
                forbidden(f"{here}.volumeMounts[{position}].{field}", _NOT_EPHEMERAL)
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
    return faults


# --- parts ------------------------------------------------------------------------------------------------------


def _host_port_faults(containers: Sequence[Document], path: str) -> list[Fault]:
    """Two ports of the same protocol and address on the host. Each list counts its containers from 0."""
    faults: list[Fault] = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in taken:
                faults.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
            taken.add(key)
    return faults


def _init_resize_faults(container: Document, path: str) -> list[Fault]:
    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", detail)
        for index, policy in enumerate(container.get("resizePolicy") or ())
        if policy.get("restartPolicy") == "RestartContainer"
    ]
