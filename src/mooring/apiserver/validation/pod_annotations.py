"""What is wrong with annotations that mean something to pods.

Comes in   annotations of a pod or a template, its spec, and what it had before
Goes out   faults

 1. Seccomp and AppArmor profiles once stood in annotations. Where a field says the same thing, both must agree.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.validation.containers_walk import every_container
from mooring.apiserver.validation.fields import Fault, forbidden, invalid
from mooring.apiserver.validation.pod_options import STRICT, PodOptions
from mooring.apiserver.validation.pod_spec import MIRROR_ANNOTATION
from mooring.apiserver.validation.pod_tolerations import tolerations_faults
from mooring.apiserver.validation.security_profiles import LOCALHOST_PREFIX, seccomp_annotation_faults

TOLERATIONS_ANNOTATION = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER_PREFIX = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
DELETION_COST_MAX = 2**31 - 1


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
        faults += _tolerations_faults(annotations[TOLERATIONS_ANNOTATION], path, options)
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


def _tolerations_faults(text: str, path: str, options: PodOptions) -> list[Fault]:
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
