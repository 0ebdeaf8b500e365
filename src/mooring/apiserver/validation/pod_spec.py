"""What is wrong with the spec of a pod, in a pod or in a template.

Comes in   a spec with defaults, the metadata of the pod (None for a template), its path, and what is tolerated
Goes out   faults, in Kubernetes' order
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.affinity import affinity_faults
from mooring.apiserver.validation.affinity_spread import spread_constraints_faults
from mooring.apiserver.validation.containers import (
    PodGround,
    ephemeral_containers_faults,
    init_containers_faults,
    ordinary_containers_faults,
)
from mooring.apiserver.validation.containers_walk import every_container
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, not_found, not_supported, required
from mooring.apiserver.validation.metadata import labels_faults
from mooring.apiserver.validation.names import (
    dns_label_faults,
    dns_subdomain_faults,
    qualified_name_faults,
    range_faults,
)
from mooring.apiserver.validation.pod_network import (
    dns_config_faults,
    dns_policy_faults,
    host_aliases_faults,
    host_network_faults,
    hostname_override_faults,
)
from mooring.apiserver.validation.pod_options import STRICT, PodOptions
from mooring.apiserver.validation.pod_resources import pod_resources_faults
from mooring.apiserver.validation.pod_tolerations import tolerations_faults
from mooring.apiserver.validation.resources import resource_requirements_faults
from mooring.apiserver.validation.security import host_users_faults, pod_security_context_faults
from mooring.apiserver.validation.security_windows import host_process_faults, operating_system_faults
from mooring.apiserver.validation.values import internal_value
from mooring.apiserver.validation.volumes import volumes_faults

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
WHOLE_OBJECT = "[]"
"""How Kubernetes prints an empty path."""
DEADLINE_S_MAX = 2**31 - 1

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


def pod_spec_faults(
    spec: Document, metadata: Document | None = None, path: str = "spec", options: PodOptions = STRICT
) -> list[Fault]:
    """Everything that is wrong with a spec."""
    faults: list[Fault] = []
    grace_s = spec.get("terminationGracePeriodSeconds")
    if grace_s is None:
        faults.append(required(f"{path}.terminationGracePeriodSeconds"))
    usable_volumes, volume_faults = volumes_faults(spec.get("volumes") or (), metadata, f"{path}.volumes", options)
    faults += volume_faults
    claims = spec.get("resourceClaims") or ()
    claim_names = [claim["name"] for claim in claims if claim.get("name")]
    faults += _resource_claims_faults(claims, metadata, f"{path}.resourceClaims")
    policy, uses_host_users = spec.get("restartPolicy", ""), spec.get("hostUsers") is not False
    ground = PodGround(usable_volumes, claim_names, grace_s, policy, uses_host_users, options)
    faults += ordinary_containers_faults(spec.get("containers") or (), ground, f"{path}.containers")
    if spec.get("initContainers"):
        faults += init_containers_faults(spec, ground, f"{path}.initContainers")
    faults += ephemeral_containers_faults(spec, ground, f"{path}.ephemeralContainers")
    faults += pod_resources_faults(spec, claim_names, path, options)
    faults += host_network_faults(spec, path, options)
    faults += _restart_policy_faults(policy, f"{path}.restartPolicy")
    faults += dns_policy_faults(spec.get("dnsPolicy", ""), f"{path}.dnsPolicy")
    if spec.get("nodeSelector"):
        faults += labels_faults(spec["nodeSelector"], f"{path}.nodeSelector")
    faults += pod_security_context_faults(spec, f"{path}.securityContext", options)
    faults += affinity_faults(spec.get("affinity"), f"{path}.affinity", options)
    faults += dns_config_faults(spec.get("dnsConfig"), spec.get("dnsPolicy", ""), f"{path}.dnsConfig")
    faults += _gates_faults(spec, path)
    if spec.get("topologySpreadConstraints"):
        constraints = spec["topologySpreadConstraints"]
        faults += spread_constraints_faults(constraints, f"{path}.topologySpreadConstraints", options)
    faults += host_process_faults(spec, path)
    faults += host_users_faults(spec, path, options)
    faults += hostname_override_faults(spec, path)
    return faults + _placement_faults(spec, path, options) + _rest_faults(spec, path, options)


# --- parts ------------------------------------------------------------------------------------------------------


def _placement_faults(spec: Document, path: str, options: PodOptions) -> list[Fault]:
    """Who it runs as, where, how long, and what it is called."""
    faults: list[Fault] = []
    for field in ("serviceAccountName", "nodeName"):
        faults += _name_faults(spec.get(field), f"{path}.{field}")
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None:
        texts = range_faults(deadline_s, 1, DEADLINE_S_MAX)
        faults += [invalid(f"{path}.activeDeadlineSeconds", deadline_s, text) for text in texts]
    for field in ("hostname", "subdomain"):
        name = spec.get(field)
        faults += [invalid(f"{path}.{field}", name, text) for text in (dns_label_faults(name) if name else ())]
    if spec.get("tolerations"):
        faults += tolerations_faults(spec["tolerations"], f"{path}.tolerations", options)
    return faults + host_aliases_faults(spec, f"{path}.hostAliases")


def _rest_faults(spec: Document, path: str, options: PodOptions) -> list[Fault]:
    faults = _name_faults(spec.get("priorityClassName"), f"{path}.priorityClassName")
    runtime, preemption = spec.get("runtimeClassName"), spec.get("preemptionPolicy")
    if runtime is not None:
        faults += [invalid(f"{path}.runtimeClassName", runtime, text) for text in dns_subdomain_faults(runtime)]
    if preemption is not None and preemption not in _PREEMPTION_POLICIES:
        here = f"{path}.preemptionPolicy"
        faults.append(not_supported(here, preemption, _PREEMPTION_POLICIES) if preemption else required(here))
    if spec.get("overhead"):
        faults += resource_requirements_faults({"limits": spec["overhead"]}, f"{path}.overhead", (), options)
    if spec.get("os") is not None:
        faults += operating_system_faults(spec, path)
    return faults + _file_key_volumes_faults(spec, path)


def _name_faults(name: str | None, path: str) -> list[Fault]:
    return [invalid(path, name, text) for text in dns_subdomain_faults(name)] if name else []


def _restart_policy_faults(policy: str, path: str) -> list[Fault]:
    if policy in _RESTART_POLICIES:
        return []
    return [not_supported(path, policy, _RESTART_POLICIES)] if policy else [required(path)]


def _gates_faults(spec: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        here, kind = f"{path}.readinessGates[{index}].conditionType", gate.get("conditionType", "")
        faults += [invalid(here, kind, text) for text in qualified_name_faults(kind)]
    names: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        here, name = f"{path}.schedulingGates[{index}]", gate.get("name", "")
        faults += [invalid(here, name, text) for text in qualified_name_faults(name)]
        if name in names:
            faults.append(duplicate(here, name))
        names.add(name)
    return faults


def _resource_claims_faults(claims: Sequence[Document], metadata: Document | None, path: str) -> list[Fault]:
    if claims and MIRROR_ANNOTATION in ((metadata or {}).get("annotations") or {}):
        return [forbidden(WHOLE_OBJECT, "static pods do not support resource claims") for _ in claims]
    faults: list[Fault] = []
    names: set[str] = set()
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            faults.append(required(f"{here}.name"))
        elif name in names:
            faults.append(duplicate(f"{here}.name", name))
        else:
            faults += [invalid(f"{here}.name", name, text) for text in dns_label_faults(name)]
            names.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
        if len(given) != 1:
            few, many = (
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            )
            faults.append(invalid(here, internal_value(claim, "PodResourceClaim"), many if given else few))
        for field in given:
            faults += [invalid(f"{here}.{field}", claim[field], text) for text in dns_subdomain_faults(claim[field])]
    return faults


def _file_key_volumes_faults(spec: Document, path: str) -> list[Fault]:
    """Variables come only from files in empty directories, which other containers of the pod have filled."""
    faults: list[Fault] = []
    for container, here in every_container(spec, path):
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            volume = {each.get("name", ""): each for each in spec.get("volumes") or ()}.get(name)
            field = f"{here}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if volume is None:
                faults.append(not_found(field, name))
            elif volume.get("emptyDir") is None:
                faults.append(invalid(field, name, "referenced volume must be of type emptyDir"))
    return faults
