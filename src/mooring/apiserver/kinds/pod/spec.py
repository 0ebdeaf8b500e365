"""Validation of a pod's spec, in a pod or in a template, and of annotations that pods give a meaning.

1. Seccomp and AppArmor profiles were annotations. Where a field states the same profile, both must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.kinds.pod.containers import (
    PodGround,
    container_image_space_faults,
    ephemeral_containers_faults,
    init_containers_faults,
    ordinary_containers_faults,
)
from mooring.apiserver.kinds.pod.options import STRICT, STRICT_POD, PodOptions, every_container
from mooring.apiserver.kinds.pod.resources import pod_resources_faults, resource_requirements_faults
from mooring.apiserver.kinds.pod.scheduling import affinity_faults, spread_constraints_faults, tolerations_faults
from mooring.apiserver.kinds.pod.security import (
    LOCALHOST_PREFIX,
    host_process_faults,
    host_users_faults,
    operating_system_faults,
    pod_security_context_faults,
    seccomp_annotation_faults,
)
from mooring.apiserver.kinds.pod.volumes import volumes_faults
from mooring.apiserver.validation.addresses import ip_faults
from mooring.apiserver.validation.fields import (
    Fault,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
)
from mooring.apiserver.validation.metadata import labels_faults
from mooring.apiserver.validation.names import (
    dns_label_faults,
    dns_subdomain_faults,
    qualified_name_faults,
    range_faults,
    underscored_subdomain_faults,
)
from mooring.apiserver.validation.values import internal_value

NAME_SERVERS_MAX = 3
SEARCH_PATHS_MAX = 32
SEARCH_CHARACTERS_MAX = 2048
HOSTNAME_OVERRIDE_LENGTH_MAX = 64

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
WHOLE_OBJECT = "[]"
"""How Kubernetes prints an empty path."""
DEADLINE_S_MAX = 2**31 - 1

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")

TOLERATIONS_ANNOTATION = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_PREFIX = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
DELETION_COST_MAX = 2**31 - 1


def dns_policy_faults(policy: str, path: str) -> list[Fault]:
    if policy in _DNS_POLICIES:
        return []
    return [not_supported(path, policy, _DNS_POLICIES)] if policy else [required(path)]


def dns_config_faults(config: Document | None, policy: str, path: str) -> list[Fault]:
    """What is wrong with `dnsConfig`; it must be there if the pod wants no other names."""
    if policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", detail)]
    if not config:
        return []
    faults: list[Fault] = []
    servers, searches = config.get("nameservers") or (), config.get("searches") or ()
    if len(servers) > NAME_SERVERS_MAX:
        detail = f"must not have more than {NAME_SERVERS_MAX} nameservers"
        faults.append(invalid(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        faults += ip_faults(server, f"{path}.nameservers[{index}]")
    if len(searches) > SEARCH_PATHS_MAX:
        detail = f"must not have more than {SEARCH_PATHS_MAX} search paths"
        faults.append(invalid(f"{path}.searches", searches, detail))
    if len(" ".join(searches).encode()) > SEARCH_CHARACTERS_MAX:
        detail = f"must not have more than {SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list"
        faults.append(invalid(f"{path}.searches", searches, detail))
    for index, search in enumerate(searches):
        domain = search.removesuffix(".")
        texts = underscored_subdomain_faults(domain) if search != "." else ()
        faults += [invalid(f"{path}.searches[{index}]", domain, text) for text in texts]
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            faults.append(required(f"{path}.options[{index}]", "must not be empty"))
    return faults


def host_network_faults(spec: Document, path: str, options: PodOptions) -> list[Fault]:
    """On the network of the host every port is a port of the host. A template may leave that open."""
    if not spec.get("hostNetwork"):
        return []
    detail = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{path}.containers[{index}].ports[{position}].hostPort", port.get("hostPort", 0), detail)
        for index, container in enumerate(spec.get("containers") or ())
        for position, port in enumerate(container.get("ports") or ())
        if (options.is_pod or port.get("hostPort")) and port.get("hostPort", 0) != port.get("containerPort", 0)
    ]


def hostname_override_faults(spec: Document, path: str) -> list[Fault]:
    override = spec.get("hostnameOverride")
    if override is None:
        return []
    faults: list[Fault] = []
    here = f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        faults.append(forbidden(here, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        faults.append(forbidden(here, "may not be specified when hostNetwork is true"))
    if len(override.encode()) > HOSTNAME_OVERRIDE_LENGTH_MAX:
        faults.append(too_long(here, HOSTNAME_OVERRIDE_LENGTH_MAX))
    return faults + [invalid(here, override, text) for text in dns_subdomain_faults(override)]


def host_aliases_faults(spec: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        faults += ip_faults(alias.get("ip", ""), f"{path}[{index}].ip")
        for position, name in enumerate(alias.get("hostnames") or ()):
            here = f"{path}[{index}].hostnames[{position}]"
            faults += [invalid(here, name, text) for text in dns_subdomain_faults(name)]
    return faults


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
        faults += _pod_spec_name_faults(spec.get(field), f"{path}.{field}")
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
    faults = _pod_spec_name_faults(spec.get("priorityClassName"), f"{path}.priorityClassName")
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


def _pod_spec_name_faults(name: str | None, path: str) -> list[Fault]:
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


def pod_annotations_faults(
    annotations: Mapping[str, str], spec: Document, path: str, options: PodOptions = STRICT
) -> list[Fault]:
    """What is wrong with the annotations of a pod or a template."""
    if not annotations:
        return []
    faults: list[Fault] = []
    if MIRROR_ANNOTATION in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        faults.append(invalid(f"{path}[{MIRROR_ANNOTATION}]", annotations[MIRROR_ANNOTATION], detail))
    if annotations.get(TOLERATIONS_ANNOTATION):
        faults += _pod_spec_tolerations_faults(annotations[TOLERATIONS_ANNOTATION], path, options)
    if not options.tolerates_deletion_cost and not has_valid_deletion_cost(annotations):
        cost = annotations[DELETION_COST_ANNOTATION]
        faults.append(invalid(f"{path}[{DELETION_COST_ANNOTATION}]", cost, "must be a 32bit integer"))
    if SECCOMP_POD_ANNOTATION in annotations:
        profile = annotations[SECCOMP_POD_ANNOTATION]
        faults += seccomp_annotation_faults(profile, f"{path}.{SECCOMP_POD_ANNOTATION}")
    for key, profile in annotations.items():
        if key.startswith(SECCOMP_CONTAINER_PREFIX):
            faults += seccomp_annotation_faults(profile, f"{path}.{key}")
    for key, profile in annotations.items():
        if key.startswith(APPARMOR_PREFIX):
            faults += _apparmor_faults(key.removeprefix(APPARMOR_PREFIX), profile, spec, f"{path}[{key}]")
    return faults


def pod_annotations_update_faults(pod: Document, old: Document, path: str, options: PodOptions) -> list[Fault]:
    """What is wrong with a change of the annotations of a pod."""
    new, known = pod["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    faults: list[Fault] = []
    for key, value in known.items():
        if new.get(key) != value:
            faults += _protected_faults(key, "may not remove or update", path)
    for key in new:
        if key not in known:
            faults += _protected_faults(key, "may not add", path)
    return faults + pod_annotations_faults(new, pod["spec"], path, options)


def profiles_match_faults(annotations: Mapping[str, str], spec: Document, path: str) -> list[Fault]:
    """Where annotations and fields name profiles, they name the same ones."""
    if not annotations or not any(".security." in key for key in annotations):
        return []
    of_pod = spec.get("securityContext") or {}
    faults: list[Fault] = []
    if SECCOMP_POD_ANNOTATION in annotations and of_pod.get("seccompProfile"):
        here = f"{path}.securityContext.seccompProfile"
        faults += _match_faults("seccomp", annotations[SECCOMP_POD_ANNOTATION], of_pod["seccompProfile"], here)
    for container, here in every_container(spec, path):
        annotation = annotations.get(f"{SECCOMP_CONTAINER_PREFIX}{container.get('name', '')}")
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        if annotation is not None and profile:
            faults += _match_faults("seccomp", annotation, profile, f"{here}.securityContext.seccompProfile")
    if (spec.get("os") or {}).get("name") == "windows":
        return faults
    for container, here in every_container(spec, path):
        annotation = annotations.get(f"{APPARMOR_PREFIX}{container.get('name', '')}")
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = own or of_pod.get("appArmorProfile")
        if annotation is not None and profile:
            faults += _match_faults("apparmor", annotation, profile, f"{here}.securityContext.appArmorProfile")
    return faults


def has_valid_deletion_cost(annotations: Mapping[str, str]) -> bool:
    cost = annotations.get(DELETION_COST_ANNOTATION)
    if cost is None:
        return True
    digits = cost.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or (cost.startswith("0") and cost != "0"):
        return False
    return -DELETION_COST_MAX - 1 <= int(cost) <= DELETION_COST_MAX


# --- parts ------------------------------------------------------------------------------------------------------


def _pod_spec_tolerations_faults(text: str, path: str, options: PodOptions) -> list[Fault]:
    try:
        tolerations = msgspec.json.decode(text.encode(), type=list[dict[str, object]] | None)
    except msgspec.DecodeError as error:
        return [invalid(path, TOLERATIONS_ANNOTATION, str(error))]
    lowered = [{key[:1].lower() + key[1:]: value for key, value in each.items()} for each in tolerations or ()]
    return tolerations_faults(lowered, f"{path}.{TOLERATIONS_ANNOTATION}", options)


def _apparmor_faults(container: str, profile: str, spec: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if all(each.get("name", "") != container for each, _ in every_container(spec, path)):
        faults.append(invalid(path, container, "container not found"))
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(LOCALHOST_PREFIX):
        faults.append(invalid(path, profile, f"invalid AppArmor profile name: {quoted(profile)}"))
    return faults


def _protected_faults(key: str, verb: str, path: str) -> list[Fault]:
    if key.startswith(APPARMOR_PREFIX):
        return [forbidden(f"{path}[{key}]", f"{verb} AppArmor annotations")]
    if key == MIRROR_ANNOTATION:
        return [forbidden(f"{path}[{key}]", f"{verb} mirror pod annotation")]
    return []


def _match_faults(kind: str, annotation: str, profile: Document, path: str) -> list[Fault]:
    default = ("runtime/default", "docker/default") if kind == "seccomp" else ("runtime/default",)
    match profile.get("type", ""):
        case "Unconfined":
            agrees = annotation == "unconfined"
        case "RuntimeDefault":
            agrees = annotation in default
        case "Localhost":
            agrees = annotation.startswith(LOCALHOST_PREFIX)
            if agrees and annotation.removeprefix(LOCALHOST_PREFIX) != profile.get("localhostProfile"):
                detail = f"{kind} profile in annotation and field must match"
                return [forbidden(f"{path}.localhostProfile", detail)]
        case _:
            agrees = True
    return [] if agrees else [forbidden(f"{path}.type", f"{kind} type in annotation and field must match")]


def new_pod_faults(spec: Document, metadata: Document) -> list[Fault]:
    """Errors of a new pod's spec. Of the metadata only `annotations` and `name` are read."""
    annotations = metadata.get("annotations") or {}
    faults = pod_faults({"spec": spec, "metadata": metadata}, STRICT_POD)
    if spec.get("ephemeralContainers"):
        faults.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        faults.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return faults + profiles_match_faults(annotations, spec, "spec")


def pod_faults(pod: Document, options: PodOptions) -> list[Fault]:
    """What is wrong with a pod apart from its metadata, however it is written."""
    spec: Document = pod["spec"]
    annotations = pod["metadata"].get("annotations") or {}
    faults = pod_annotations_faults(annotations, spec, "metadata.annotations", options)
    faults += pod_spec_faults(spec, pod["metadata"], "spec", options)
    if not spec.get("serviceAccountName"):
        faults += _pod_spec_token_faults(spec)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            faults += container_image_space_faults(container, f"spec.{kind}[{index}]")
    return faults


def _pod_spec_token_faults(spec: Document) -> list[Fault]:
    detail = "must not be specified when serviceAccountName is not set"
    return [
        forbidden(f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken", detail)
        for index, volume in enumerate(spec.get("volumes") or ())
        for position, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]
