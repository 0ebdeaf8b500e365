"""The restricted level of pod security: what a pod must give up beyond the baseline.

Input: the metadata and the spec of a pod.
Output: a `Violation` for each check that it fails.

 1. What is not said is a violation here, where the baseline only forbids what is said.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.admission.pod_security_baseline import is_profile_set, seccomp_profile
from mooring.apiserver.admission.pod_security_words import (
    Check,
    Violation,
    containers_named,
    containers_of,
    is_in_user_namespace,
    is_windows,
    listed,
    plural,
    security_of,
    setters,
)

_VOLUMES = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_OTHER_VOLUMES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def unless_windows(check: Check) -> Check:
    """The check, for pods that say nothing of Windows, where it would mean nothing."""
    return lambda metadata, spec: None if is_windows(spec) else check(metadata, spec)


def unless_user_namespace(check: Check) -> Check:
    return lambda metadata, spec: None if is_in_user_namespace(spec) else check(metadata, spec)


def privilege_escalation(metadata: Document, spec: Document) -> Violation | None:
    bad = [one["name"] for one in containers_of(spec) if security_of(one).get("allowPrivilegeEscalation") is not False]
    if not bad:
        return None
    return Violation(
        "allowPrivilegeEscalation != false",
        f"{containers_named(bad)} must set securityContext.allowPrivilegeEscalation=false",
    )


def capabilities(metadata: Document, spec: Document) -> Violation | None:
    keeping, adding, forbidden = [], [], set()
    for one in containers_of(spec):
        mine = security_of(one).get("capabilities") or {}
        if "ALL" not in (mine.get("drop") or []):
            keeping.append(one["name"])
        added = [name for name in mine.get("add") or [] if name != "NET_BIND_SERVICE"]
        if added:
            adding.append(one["name"])
            forbidden.update(added)
    details = []
    if keeping:
        details.append(f'{containers_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        what = listed(sorted(forbidden))
        details.append(f"{containers_named(adding)} must not include {what} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def volumes(metadata: Document, spec: Document) -> Violation | None:
    names, kinds = [], set()
    for volume in spec.get("volumes") or []:
        if any(volume.get(kind) is not None for kind in _VOLUMES):
            continue
        names.append(volume["name"])
        kinds.add(next((kind for kind in _OTHER_VOLUMES if volume.get(kind) is not None), "unknown"))
    if not names:
        return None
    what = plural("restricted volume type", "restricted volume types", len(kinds))
    who = f"{plural('volume', 'volumes', len(names))} {listed(names)} {plural('uses', 'use', len(names))}"
    return Violation("restricted volume types", f"{who} {what} {listed(sorted(kinds))}")


def run_as_non_root(metadata: Document, spec: Document) -> Violation | None:
    of_pod = security_of(spec).get("runAsNonRoot")
    claiming, silent = [], []
    for one in containers_of(spec):
        mine = security_of(one).get("runAsNonRoot")
        if mine is False:
            claiming.append(one["name"])
        elif mine is None and not of_pod:
            silent.append(one["name"])
    who = setters(of_pod is False, claiming)
    if who:
        return Violation("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    if silent:
        detail = f"pod or {containers_named(silent)} must set securityContext.runAsNonRoot=true"
        return Violation("runAsNonRoot != true", detail)
    return None


def run_as_user(metadata: Document, spec: Document) -> Violation | None:
    is_bad = security_of(spec).get("runAsUser") == 0
    bad = [one["name"] for one in containers_of(spec) if security_of(one).get("runAsUser") == 0]
    who = setters(is_bad, bad)
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp(metadata: Document, spec: Document) -> Violation | None:
    violation = seccomp_profile(metadata, spec)
    if violation is not None or is_profile_set(spec, "seccompProfile"):
        return violation
    silent = [one["name"] for one in containers_of(spec) if not is_profile_set(one, "seccompProfile")]
    if not silent:
        return None
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {containers_named(silent)} {must}")
