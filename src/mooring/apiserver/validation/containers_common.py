"""What is wrong with one container, of whatever sort.

Comes in   a container and the facts of its pod
Goes out   faults

 1. Rules that only some sorts have (probes, hooks, unique names) are in `validation.containers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mooring.api.document import Document
from mooring.apiserver.validation.containers_environment import environment_faults, environment_imports_faults
from mooring.apiserver.validation.containers_mounts import devices_faults, mounts_faults
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, not_supported, required, too_many
from mooring.apiserver.validation.names import dns_label_faults, port_name_faults, port_number_faults
from mooring.apiserver.validation.resources import resource_requirements_faults
from mooring.apiserver.validation.security import security_context_faults

if TYPE_CHECKING:
    from mooring.apiserver.validation.containers import PodGround

RESTART_RULES_MAX = 20
EXIT_CODES_MAX = 255

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_RESTART_OPERATORS = ("In", "NotIn")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")


def container_faults(container: Document, ground: PodGround, path: str) -> list[Fault]:
    """What is wrong with a container of any sort."""
    name = container.get("name", "")
    faults = (
        [invalid(f"{path}.name", name, text) for text in dns_label_faults(name)] if name else [required(f"{path}.name")]
    )
    if not container.get("image"):
        faults.append(required(f"{path}.image"))
    faults += _choice_faults(
        container.get("terminationMessagePolicy", ""), _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy"
    )
    if container.get("ports"):
        faults += _ports_faults(container["ports"], f"{path}.ports")
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
    return _choice_faults(policy, _PULL_POLICIES, path)


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


def _choice_faults(value: str, choices: Sequence[str], path: str) -> list[Fault]:
    if value in choices:
        return []
    return [not_supported(path, value, choices)] if value else [required(path)]


def _ports_faults(ports: Sequence[Document], path: str) -> list[Fault]:
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
        faults += _choice_faults(port.get("protocol", ""), _PROTOCOLS, f"{here}.protocol")
    return faults


def _resize_policy_faults(policies: Sequence[Document], pod_policy: str, path: str) -> list[Fault]:
    faults: list[Fault] = []
    names: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in names:
            faults.append(duplicate(f"{path}[{index}]", name))
        names.add(name)
        faults += _choice_faults(name, ("cpu", "memory"), path)
        faults += _choice_faults(restart, _RESIZE_POLICIES, path)
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
