"""The checks of pod security: the baseline level (no known way to take over the node), and the restricted level.

Input: the metadata and the spec of a pod. Output: a `PodSecurityViolation` for each check that the pod fails.

 1. All containers count: init containers, containers and ephemeral containers, in this order.
 2. The baseline forbids values. The restricted level also rejects fields that are not set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, NamedTuple, TypeAlias

from mooring.api.document import Document
from mooring.api.field_errors import quoted


class PodSecurityViolation(NamedTuple):
    """Why a pod is not allowed on a level."""

    reason: str
    detail: str


Check: TypeAlias = Callable[[Document, Document], PodSecurityViolation | None]
"""From the metadata and the spec of a pod to what is wrong with it."""


def containers_of(spec: Document) -> list[Document]:
    return [
        *(spec.get("initContainers") or []),
        *(spec.get("containers") or []),
        *(spec.get("ephemeralContainers") or []),
    ]


def security_of(holder: Document) -> Document:
    """The security context of a container, or of a pod's spec."""
    return holder.get("securityContext") or {}


def listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def plural(singular: str, several: str, count: int) -> str:
    return singular if count == 1 else several


def containers_named(names: Sequence[str]) -> str:
    return f"{plural('container', 'containers', len(names))} {listed(names)}"


def setters(is_pod: bool, names: Sequence[str]) -> str:
    """The parts of a pod that set a forbidden value: the pod, containers, or both."""
    return " and ".join([*(["pod"] if is_pod else []), *([containers_named(names)] if names else [])])


def is_in_user_namespace(spec: Document) -> bool:
    """Whether the pod has a user namespace, where root is not root of the node. Some rules are relaxed then."""
    return spec.get("hostUsers") is False


def is_windows(spec: Document) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


# --- the baseline level ---------------------------------------------------------------------------------------


SOUND_PROFILES = ("Localhost", "RuntimeDefault")

_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"


def app_armor_profile(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    is_bad = _is_bad_profile(spec, "appArmorProfile")
    bad = [container for container in containers_of(spec) if _is_bad_profile(container, "appArmorProfile")]
    values = {_profile_type(holder, "appArmorProfile") for holder in ([spec] if is_bad else []) + bad}
    annotations = sorted(
        f"{key}={quoted(value)}"
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(_ARMOR_ANNOTATION) and value not in ("", "runtime/default")
        if not value.startswith("localhost/")
    )
    who = [part for part in (setters(is_bad, [container["name"] for container in bad]),) if part]
    if annotations:
        who.append(plural("annotation", "annotations", len(annotations)))
    if not who:
        return None
    everything = [*sorted(values), *annotations]
    return PodSecurityViolation(
        plural("forbidden AppArmor profile", "forbidden AppArmor profiles", len(everything)),
        f"{' and '.join(who)} must not set AppArmor profile type to {listed(everything)}",
    )


def capabilities(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    bad, forbidden = [], set()
    for container in containers_of(spec):
        added = [name for name in _capabilities_of(container).get("add") or [] if name not in _CAPABILITIES]
        if added:
            bad.append(container["name"])
            forbidden.update(added)
    if not bad:
        return None
    return PodSecurityViolation(
        "non-default capabilities",
        f"{containers_named(bad)} must not include {listed(sorted(forbidden))} in securityContext.capabilities.add",
    )


def host_namespaces(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return PodSecurityViolation("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    names = [volume["name"] for volume in spec.get("volumes") or [] if volume.get("hostPath") is not None]
    return (
        PodSecurityViolation("hostPath volumes", f"{plural('volume', 'volumes', len(names))} {listed(names)}")
        if names
        else None
    )


def host_ports(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    bad, ports = [], set()
    for container in containers_of(spec):
        mine = [str(port["hostPort"]) for port in container.get("ports") or [] if port.get("hostPort")]
        if mine:
            bad.append(container["name"])
            ports.update(mine)
    if not bad:
        return None
    uses = f"{plural('uses', 'use', len(bad))} {plural('hostPort', 'hostPorts', len(ports))}"
    return PodSecurityViolation("hostPort", f"{containers_named(bad)} {uses} {', '.join(sorted(ports))}")


def host_probes(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    bad, hosts = set(), set()
    for container in containers_of(spec):
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(field) for field in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
        mine = {host for handler in handlers if handler for host in _hosts_of(handler)}
        if mine:
            bad.add(container["name"])
            hosts |= mine
    if not bad:
        return None
    what = plural("probe or lifecycle host", "probe or lifecycle hosts", len(hosts))
    who = f"{containers_named(sorted(bad))} {plural('uses', 'use', len(bad))}"
    return PodSecurityViolation("probe or lifecycle host", f"{who} {what} {listed(sorted(hosts))}")


def privileged(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    bad = [container["name"] for container in containers_of(spec) if security_of(container).get("privileged")]
    return (
        PodSecurityViolation("privileged", f"{containers_named(bad)} must not set securityContext.privileged=true")
        if bad
        else None
    )


def proc_mount(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    bad = [
        container
        for container in containers_of(spec)
        if security_of(container).get("procMount") not in (None, "Default")
    ]
    if not bad:
        return None
    kinds = sorted({security_of(container)["procMount"] for container in bad})
    who = containers_named([container["name"] for container in bad])
    return PodSecurityViolation("procMount", f"{who} must not set securityContext.procMount to {listed(kinds)}")


def security_linux_options(allowed: Set[str]) -> Check:
    """SELinux: only some types, and neither user nor role."""

    def check(metadata: Document, spec: Document) -> PodSecurityViolation | None:
        is_bad = _is_bad_label(spec, allowed)
        bad = [container for container in containers_of(spec) if _is_bad_label(container, allowed)]
        if not is_bad and not bad:
            return None
        options = [security_of(holder)["seLinuxOptions"] for holder in ([spec] if is_bad else []) + bad]
        types = sorted({option.get("type", "") for option in options if option.get("type", "") not in allowed})
        what = [f"{plural('type', 'types', len(types))} {listed(types)}"] if types else []
        what += [
            f"{field} may not be set" for field in ("user", "role") if any(option.get(field) for option in options)
        ]
        who = setters(is_bad, [container["name"] for container in bad])
        return PodSecurityViolation(
            "seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(what)}"
        )

    return check


def seccomp_annotations(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    annotations = metadata.get("annotations") or {}
    keys = [
        _SECCOMP_POD_ANNOTATION,
        *(_SECCOMP_CONTAINER_ANNOTATION + container["name"] for container in containers_of(spec)),
    ]
    bad = sorted(
        {
            f"{key}={quoted(annotations[key])}"
            for key in keys
            if key in annotations and annotations[key] not in ("runtime/default", "docker/default")
            if not annotations[key].startswith("localhost/")
        }
    )
    if not bad:
        return None
    return PodSecurityViolation(
        "seccompProfile", f"forbidden {plural('annotation', 'annotations', len(bad))} {', '.join(bad)}"
    )


def seccomp_profile(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    is_bad = _is_bad_profile(spec, "seccompProfile")
    bad = [container for container in containers_of(spec) if _is_bad_profile(container, "seccompProfile")]
    if not is_bad and not bad:
        return None
    values = sorted({_profile_type(holder, "seccompProfile") for holder in ([spec] if is_bad else []) + bad})
    who = setters(is_bad, [container["name"] for container in bad])
    return PodSecurityViolation(
        "seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {listed(values)}"
    )


def sysctls(allowed: Set[str]) -> Check:
    """Only kernel parameters that apply to the namespaces of the pod are allowed."""

    def check(metadata: Document, spec: Document) -> PodSecurityViolation | None:
        names = [sysctl.get("name", "") for sysctl in security_of(spec).get("sysctls") or []]
        bad = [name for name in names if name not in allowed]
        return PodSecurityViolation("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def windows_host_process(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    is_bad = _is_host_process(spec)
    bad = [container["name"] for container in containers_of(spec) if _is_host_process(container)]
    if not is_bad and not bad:
        return None
    return PodSecurityViolation(
        "hostProcess", f"{setters(is_bad, bad)} must not set securityContext.windowsOptions.hostProcess=true"
    )


def is_profile_set(holder: Document, field: str) -> bool:
    return security_of(holder).get(field) is not None


def _is_bad_profile(holder: Document, field: str) -> bool:
    return is_profile_set(holder, field) and _profile_type(holder, field) not in SOUND_PROFILES


def _profile_type(holder: Document, field: str) -> str:
    return str(security_of(holder)[field].get("type", ""))


def _capabilities_of(container: Document) -> Document:
    return security_of(container).get("capabilities") or {}


def _hosts_of(handler: Document) -> list[str]:
    actions: list[dict[str, Any]] = [handler.get("httpGet") or {}, handler.get("tcpSocket") or {}]
    return [action["host"] for action in actions if action.get("host")]


def _is_bad_label(holder: Document, allowed: Set[str]) -> bool:
    options = security_of(holder).get("seLinuxOptions")
    return options is not None and bool(
        options.get("type", "") not in allowed or options.get("user") or options.get("role")
    )


def _is_host_process(holder: Document) -> bool:
    return bool((security_of(holder).get("windowsOptions") or {}).get("hostProcess"))


# --- the restricted level -------------------------------------------------------------------------------------


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
    """The check, skipped for Windows pods, where it does not apply."""
    return lambda metadata, spec: None if is_windows(spec) else check(metadata, spec)


def unless_user_namespace(check: Check) -> Check:
    return lambda metadata, spec: None if is_in_user_namespace(spec) else check(metadata, spec)


def privilege_escalation(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    bad = [
        container["name"]
        for container in containers_of(spec)
        if security_of(container).get("allowPrivilegeEscalation") is not False
    ]
    if not bad:
        return None
    return PodSecurityViolation(
        "allowPrivilegeEscalation != false",
        f"{containers_named(bad)} must set securityContext.allowPrivilegeEscalation=false",
    )


def restricted_capabilities(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    keeping, adding, forbidden = [], [], set()
    for container in containers_of(spec):
        mine = security_of(container).get("capabilities") or {}
        if "ALL" not in (mine.get("drop") or []):
            keeping.append(container["name"])
        added = [name for name in mine.get("add") or [] if name != "NET_BIND_SERVICE"]
        if added:
            adding.append(container["name"])
            forbidden.update(added)
    details = []
    if keeping:
        details.append(f'{containers_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        what = listed(sorted(forbidden))
        details.append(f"{containers_named(adding)} must not include {what} in securityContext.capabilities.add")
    return PodSecurityViolation("unrestricted capabilities", "; ".join(details)) if details else None


def restricted_volumes(metadata: Document, spec: Document) -> PodSecurityViolation | None:
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
    return PodSecurityViolation("restricted volume types", f"{who} {what} {listed(sorted(kinds))}")


def run_as_non_root(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    of_pod = security_of(spec).get("runAsNonRoot")
    claiming, silent = [], []
    for container in containers_of(spec):
        mine = security_of(container).get("runAsNonRoot")
        if mine is False:
            claiming.append(container["name"])
        elif mine is None and not of_pod:
            silent.append(container["name"])
    who = setters(of_pod is False, claiming)
    if who:
        return PodSecurityViolation("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    if silent:
        detail = f"pod or {containers_named(silent)} must set securityContext.runAsNonRoot=true"
        return PodSecurityViolation("runAsNonRoot != true", detail)
    return None


def run_as_user(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    is_bad = security_of(spec).get("runAsUser") == 0
    bad = [container["name"] for container in containers_of(spec) if security_of(container).get("runAsUser") == 0]
    who = setters(is_bad, bad)
    return PodSecurityViolation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def restricted_seccomp(metadata: Document, spec: Document) -> PodSecurityViolation | None:
    violation = seccomp_profile(metadata, spec)
    if violation is not None or is_profile_set(spec, "seccompProfile"):
        return violation
    silent = [container["name"] for container in containers_of(spec) if not is_profile_set(container, "seccompProfile")]
    if not silent:
        return None
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return PodSecurityViolation("seccompProfile", f"pod or {containers_named(silent)} {must}")
