"""Validation of a pod's spec, in a pod or in a template, and of annotations that pods give a meaning.

1. Seccomp and AppArmor profiles were annotations. Where a field states the same profile, both must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.kinds.pod.containers import (
    ContainerValidation,
    validate_container_image_space,
    validate_ephemeral_containers,
    validate_init_containers,
    validate_ordinary_containers,
)
from mooring.apiserver.kinds.pod.options import STRICT, STRICT_POD, PodOptions, every_container
from mooring.apiserver.kinds.pod.resources import validate_pod_resources, validate_resource_requirements
from mooring.apiserver.kinds.pod.scheduling import validate_affinity, validate_spread_constraints, validate_tolerations
from mooring.apiserver.kinds.pod.security import (
    LOCALHOST_PREFIX,
    validate_host_process,
    validate_host_users,
    validate_operating_system,
    validate_pod_security_context,
    validate_seccomp_annotation,
)
from mooring.apiserver.kinds.pod.volumes import validated_volumes
from mooring.apiserver.validation.addresses import validate_ip
from mooring.apiserver.validation.fields import FieldError, duplicate, forbidden, invalid, not_found, required
from mooring.apiserver.validation.metadata import validate_labels
from mooring.apiserver.validation.names import (
    dns_label_errors,
    dns_subdomain_errors,
    qualified_name_errors,
    underscored_subdomain_errors,
)
from mooring.apiserver.validation.schema_rules import enum_values, struct_rules, validate_required_enum
from mooring.apiserver.validation.values import internal_value

_POD_SPEC = struct_rules("core", "PodSpec")
NAME_SERVERS_MAX = 3
SEARCH_PATHS_MAX = 32
SEARCH_CHARACTERS_MAX = 2048


MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
WHOLE_OBJECT = "[]"
"""How Kubernetes prints an empty path."""
DEADLINE_S_MAX = 2**31 - 1

_PREEMPTION_POLICIES = enum_values("core", "PreemptionPolicy")

TOLERATIONS_ANNOTATION = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_PREFIX = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
DELETION_COST_MAX = 2**31 - 1


def validate_dns_config(config: Document | None, policy: str, path: str) -> list[FieldError]:
    """Field errors of `dnsConfig`; required with the policy `None`."""
    if policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", detail)]
    if not config:
        return []
    errors: list[FieldError] = []
    servers, searches = config.get("nameservers") or (), config.get("searches") or ()
    if len(servers) > NAME_SERVERS_MAX:
        detail = f"must not have more than {NAME_SERVERS_MAX} nameservers"
        errors.append(invalid(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        errors += validate_ip(server, f"{path}.nameservers[{index}]")
    if len(searches) > SEARCH_PATHS_MAX:
        detail = f"must not have more than {SEARCH_PATHS_MAX} search paths"
        errors.append(invalid(f"{path}.searches", searches, detail))
    if len(" ".join(searches).encode()) > SEARCH_CHARACTERS_MAX:
        detail = f"must not have more than {SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, detail))
    for index, search in enumerate(searches):
        domain = search.removesuffix(".")
        texts = underscored_subdomain_errors(domain) if search != "." else ()
        errors += [invalid(f"{path}.searches[{index}]", domain, text) for text in texts]
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def validate_host_network(spec: Document, path: str, options: PodOptions) -> list[FieldError]:
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


def validate_hostname_override(spec: Document, path: str) -> list[FieldError]:
    if spec.get("hostnameOverride") is None:
        return []
    errors: list[FieldError] = []
    here = f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        errors.append(forbidden(here, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(forbidden(here, "may not be specified when hostNetwork is true"))
    return errors + _POD_SPEC.validate(spec, path, "hostnameOverride")


def validate_host_aliases(spec: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        errors += validate_ip(alias.get("ip", ""), f"{path}[{index}].ip")
        for position, name in enumerate(alias.get("hostnames") or ()):
            here = f"{path}[{index}].hostnames[{position}]"
            errors += [invalid(here, name, text) for text in dns_subdomain_errors(name)]
    return errors


def validate_pod_spec(
    spec: Document, metadata: Document | None = None, path: str = "spec", options: PodOptions = STRICT
) -> list[FieldError]:
    """Field errors of a spec."""
    errors: list[FieldError] = []
    grace_s = spec.get("terminationGracePeriodSeconds")
    if grace_s is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    usable_volumes, volume_errors = validated_volumes(spec.get("volumes") or (), metadata, f"{path}.volumes", options)
    errors += volume_errors
    claims = spec.get("resourceClaims") or ()
    claim_names = [claim["name"] for claim in claims if claim.get("name")]
    errors += _validate_resource_claims(claims, metadata, f"{path}.resourceClaims")
    policy, uses_host_users = spec.get("restartPolicy", ""), spec.get("hostUsers") is not False
    ground = ContainerValidation(usable_volumes, claim_names, grace_s, policy, uses_host_users, options)
    errors += validate_ordinary_containers(spec.get("containers") or (), ground, f"{path}.containers")
    if spec.get("initContainers"):
        errors += validate_init_containers(spec, ground, f"{path}.initContainers")
    errors += validate_ephemeral_containers(spec, ground, f"{path}.ephemeralContainers")
    errors += validate_pod_resources(spec, claim_names, path, options)
    errors += validate_host_network(spec, path, options)
    errors += _POD_SPEC.validate(spec, path, "restartPolicy", "dnsPolicy")
    if spec.get("nodeSelector"):
        errors += validate_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    errors += validate_pod_security_context(spec, f"{path}.securityContext", options)
    errors += validate_affinity(spec.get("affinity"), f"{path}.affinity", options)
    errors += validate_dns_config(spec.get("dnsConfig"), spec.get("dnsPolicy", ""), f"{path}.dnsConfig")
    errors += _validate_gates(spec, path)
    if spec.get("topologySpreadConstraints"):
        constraints = spec["topologySpreadConstraints"]
        errors += validate_spread_constraints(constraints, f"{path}.topologySpreadConstraints", options)
    errors += validate_host_process(spec, path)
    errors += validate_host_users(spec, path, options)
    errors += validate_hostname_override(spec, path)
    return errors + _validate_placement(spec, path, options) + _validate_rest(spec, path, options)


def _validate_placement(spec: Document, path: str, options: PodOptions) -> list[FieldError]:
    """Field errors of account, node, deadlines and names."""
    fields = ("serviceAccountName", "nodeName", "activeDeadlineSeconds", "hostname", "subdomain")
    errors = _POD_SPEC.validate(spec, path, *fields)
    if spec.get("tolerations"):
        errors += validate_tolerations(spec["tolerations"], f"{path}.tolerations", options)
    return errors + validate_host_aliases(spec, f"{path}.hostAliases")


def _validate_rest(spec: Document, path: str, options: PodOptions) -> list[FieldError]:
    errors = _POD_SPEC.validate(spec, path, "priorityClassName")
    errors += _POD_SPEC.validate(spec, path, "runtimeClassName")
    preemption = spec.get("preemptionPolicy")
    if preemption is not None:
        errors += validate_required_enum(preemption, _PREEMPTION_POLICIES, f"{path}.preemptionPolicy")
    if spec.get("overhead"):
        errors += validate_resource_requirements({"limits": spec["overhead"]}, f"{path}.overhead", (), options)
    if spec.get("os") is not None:
        errors += validate_operating_system(spec, path)
    return errors + _validate_file_key_volumes(spec, path)


def _validate_gates(spec: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        errors += struct_rules("core", "PodReadinessGate").validate(gate, f"{path}.readinessGates[{index}]")
    names: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        here, name = f"{path}.schedulingGates[{index}]", gate.get("name", "")
        errors += [invalid(here, name, text) for text in qualified_name_errors(name)]
        if name in names:
            errors.append(duplicate(here, name))
        names.add(name)
    return errors


def _validate_resource_claims(claims: Sequence[Document], metadata: Document | None, path: str) -> list[FieldError]:
    if claims and MIRROR_ANNOTATION in ((metadata or {}).get("annotations") or {}):
        return [forbidden(WHOLE_OBJECT, "static pods do not support resource claims") for _ in claims]
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            errors.append(required(f"{here}.name"))
        elif name in names:
            errors.append(duplicate(f"{here}.name", name))
        else:
            errors += [invalid(f"{here}.name", name, text) for text in dns_label_errors(name)]
            names.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
        if len(given) != 1:
            few, many = (
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            )
            errors.append(invalid(here, internal_value(claim, "PodResourceClaim"), many if given else few))
        for field in given:
            errors += [invalid(f"{here}.{field}", claim[field], text) for text in dns_subdomain_errors(claim[field])]
    return errors


def _validate_file_key_volumes(spec: Document, path: str) -> list[FieldError]:
    """Variables from files require an emptyDir volume, which other containers of the pod fill."""
    errors: list[FieldError] = []
    for container, here in every_container(spec, path):
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            volume = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}.get(name)
            field = f"{here}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if volume is None:
                errors.append(not_found(field, name))
            elif volume.get("emptyDir") is None:
                errors.append(invalid(field, name, "referenced volume must be of type emptyDir"))
    return errors


def validate_pod_annotations(
    annotations: Mapping[str, str], spec: Document, path: str, options: PodOptions = STRICT
) -> list[FieldError]:
    """Field errors of the annotations of a pod or a template."""
    if not annotations:
        return []
    errors: list[FieldError] = []
    if MIRROR_ANNOTATION in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR_ANNOTATION}]", annotations[MIRROR_ANNOTATION], detail))
    if annotations.get(TOLERATIONS_ANNOTATION):
        errors += _validate_pod_spec_tolerations(annotations[TOLERATIONS_ANNOTATION], path, options)
    if not options.tolerates_deletion_cost and not has_valid_deletion_cost(annotations):
        cost = annotations[DELETION_COST_ANNOTATION]
        errors.append(invalid(f"{path}[{DELETION_COST_ANNOTATION}]", cost, "must be a 32bit integer"))
    if SECCOMP_POD_ANNOTATION in annotations:
        profile = annotations[SECCOMP_POD_ANNOTATION]
        errors += validate_seccomp_annotation(profile, f"{path}.{SECCOMP_POD_ANNOTATION}")
    for key, profile in annotations.items():
        if key.startswith(SECCOMP_CONTAINER_PREFIX):
            errors += validate_seccomp_annotation(profile, f"{path}.{key}")
    for key, profile in annotations.items():
        if key.startswith(APPARMOR_PREFIX):
            errors += _validate_apparmor(key.removeprefix(APPARMOR_PREFIX), profile, spec, f"{path}[{key}]")
    return errors


def validate_pod_annotations_update(pod: Document, old: Document, path: str, options: PodOptions) -> list[FieldError]:
    """Field errors of a change of the annotations of a pod."""
    new, known = pod["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    errors: list[FieldError] = []
    for key, value in known.items():
        if new.get(key) != value:
            errors += _validate_protected(key, "may not remove or update", path)
    for key in new:
        if key not in known:
            errors += _validate_protected(key, "may not add", path)
    return errors + validate_pod_annotations(new, pod["spec"], path, options)


def validate_profiles_match(annotations: Mapping[str, str], spec: Document, path: str) -> list[FieldError]:
    """Where annotations and fields name profiles, they name the same ones."""
    if not annotations or not any(".security." in key for key in annotations):
        return []
    of_pod = spec.get("securityContext") or {}
    errors: list[FieldError] = []
    if SECCOMP_POD_ANNOTATION in annotations and of_pod.get("seccompProfile"):
        here = f"{path}.securityContext.seccompProfile"
        errors += _validate_match("seccomp", annotations[SECCOMP_POD_ANNOTATION], of_pod["seccompProfile"], here)
    for container, here in every_container(spec, path):
        annotation = annotations.get(f"{SECCOMP_CONTAINER_PREFIX}{container.get('name', '')}")
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        if annotation is not None and profile:
            errors += _validate_match("seccomp", annotation, profile, f"{here}.securityContext.seccompProfile")
    if (spec.get("os") or {}).get("name") == "windows":
        return errors
    for container, here in every_container(spec, path):
        annotation = annotations.get(f"{APPARMOR_PREFIX}{container.get('name', '')}")
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        profile = own or of_pod.get("appArmorProfile")
        if annotation is not None and profile:
            errors += _validate_match("apparmor", annotation, profile, f"{here}.securityContext.appArmorProfile")
    return errors


def has_valid_deletion_cost(annotations: Mapping[str, str]) -> bool:
    cost = annotations.get(DELETION_COST_ANNOTATION)
    if cost is None:
        return True
    digits = cost.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or (cost.startswith("0") and cost != "0"):
        return False
    return -DELETION_COST_MAX - 1 <= int(cost) <= DELETION_COST_MAX


def _validate_pod_spec_tolerations(text: str, path: str, options: PodOptions) -> list[FieldError]:
    try:
        tolerations = msgspec.json.decode(text.encode(), type=list[dict[str, object]] | None)
    except msgspec.DecodeError as error:
        return [invalid(path, TOLERATIONS_ANNOTATION, str(error))]
    lowered = [
        {key[:1].lower() + key[1:]: value for key, value in toleration.items()} for toleration in tolerations or ()
    ]
    return validate_tolerations(lowered, f"{path}.{TOLERATIONS_ANNOTATION}", options)


def _validate_apparmor(container: str, profile: str, spec: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if all(candidate.get("name", "") != container for candidate, _ in every_container(spec, path)):
        errors.append(invalid(path, container, "container not found"))
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(LOCALHOST_PREFIX):
        errors.append(invalid(path, profile, f"invalid AppArmor profile name: {quoted(profile)}"))
    return errors


def _validate_protected(key: str, verb: str, path: str) -> list[FieldError]:
    if key.startswith(APPARMOR_PREFIX):
        return [forbidden(f"{path}[{key}]", f"{verb} AppArmor annotations")]
    if key == MIRROR_ANNOTATION:
        return [forbidden(f"{path}[{key}]", f"{verb} mirror pod annotation")]
    return []


def _validate_match(kind: str, annotation: str, profile: Document, path: str) -> list[FieldError]:
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


def validate_new_pod(spec: Document, metadata: Document) -> list[FieldError]:
    """Errors of a new pod's spec. Of the metadata only `annotations` and `name` are read."""
    annotations = metadata.get("annotations") or {}
    errors = validate_pod({"spec": spec, "metadata": metadata}, STRICT_POD)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors + validate_profiles_match(annotations, spec, "spec")


def validate_pod(pod: Document, options: PodOptions) -> list[FieldError]:
    """Field errors of a pod outside of its metadata, on create and update."""
    spec: Document = pod["spec"]
    annotations = pod["metadata"].get("annotations") or {}
    errors = validate_pod_annotations(annotations, spec, "metadata.annotations", options)
    errors += validate_pod_spec(spec, pod["metadata"], "spec", options)
    if not spec.get("serviceAccountName"):
        errors += _validate_pod_spec_token(spec)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            errors += validate_container_image_space(container, f"spec.{kind}[{index}]")
    return errors


def _validate_pod_spec_token(spec: Document) -> list[FieldError]:
    detail = "must not be specified when serviceAccountName is not set"
    return [
        forbidden(f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken", detail)
        for index, volume in enumerate(spec.get("volumes") or ())
        for position, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]
