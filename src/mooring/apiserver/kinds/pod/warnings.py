"""Warnings about valid pods and pod templates.

1. `path` is the path of the template (`spec.template`), or empty for a pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.quantity import quantity_milli
from mooring.apiserver.kinds.node import DEPRECATED_NODE_LABELS, node_selector_term_warnings
from mooring.apiserver.kinds.persistent_volume_claim import claim_spec_warnings
from mooring.apiserver.kinds.pod.options import every_container
from mooring.apiserver.kinds.pod.security import apparmor_of_annotation
from mooring.apiserver.kinds.pod.spec import APPARMOR_PREFIX, SECCOMP_CONTAINER_PREFIX, SECCOMP_POD_ANNOTATION
from mooring.apiserver.validation.addresses import ip_warnings
from mooring.apiserver.validation.names import dns_label_errors

_OUT_OF_USE = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SHOWN_NAMES = {"storageos": "storageOS"}

_DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP_ADVICE = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APPARMOR_ADVICE = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_BYTES = ("memory", "ephemeral-storage")


def port_warnings(spec: Document, path: str) -> list[str]:
    """Warnings about clashes first, then about names."""
    ports = [
        (port, f"{here}.ports[{index}]")
        for container, here in every_container(spec, path)
        for index, port in enumerate(container.get("ports") or ())
    ]
    return _clash_warnings(ports) + _port_name_warnings(ports) if ports else []


def _clash_warnings(ports: list[tuple[Document, str]]) -> list[str]:
    warnings: list[str] = []
    known: dict[tuple[int, str], list[tuple[Document, str]]] = {}
    for port, path in ports:
        if port.get("hostIP") and not port.get("hostPort"):
            warnings.append(f"{path}: hostIP set without hostPort: {_printed(port)}")
        same = known.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
        for other, place in same:
            conflict = _clash(port, other)
            if conflict:
                warnings.append(f"{path}: {conflict} port definition with {place}")
        same.append((port, path))
    return warnings


def _clash(port: Document, other: Document) -> str:
    number, address = port.get("hostPort", 0), port.get("hostIP", "")
    other_number, other_address = other.get("hostPort", 0), other.get("hostIP", "")
    if (number, address) == (other_number, other_address):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    is_one_everywhere = (not address) != (not other_address)
    return "dangerously ambiguous" if number == other_number and is_one_everywhere else ""


def _port_name_warnings(ports: list[tuple[Document, str]]) -> list[str]:
    warnings: list[str] = []
    first: dict[str, str] = {}
    for port, path in ports:
        name = port.get("name")
        if not name:
            continue
        if name in first:
            advice = f"services and probes that select ports by name will use {first[name]}"
            warnings.append(f"{path}: duplicate port name {quoted(name)} with {first[name]}, {advice}")
        else:
            first[name] = path
    return warnings


def _printed(port: Document) -> str:
    """A port as Go prints the struct."""
    numbers = f"HostPort:{port.get('hostPort', 0)} ContainerPort:{port.get('containerPort', 0)}"
    rest = f"Protocol:{port.get('protocol', '')} HostIP:{port.get('hostIP', '')}"
    return f"{{Name:{port.get('name', '')} {numbers} {rest}}}"


class _File(NamedTuple):
    path: str
    source: str

    def __str__(self) -> str:
        return f"{quoted(self.path)} ({self.source})" if self.source else quoted(self.path)


def volume_warnings(volumes: Sequence[Document], path: str) -> list[str]:
    """Sources that are out of use, and claims of half a byte."""
    warnings: list[str] = []
    for index, volume in enumerate(volumes):
        for kind, advice in _OUT_OF_USE.items():
            if volume.get(kind) is None:
                continue
            here = f"{path}[{index}].{_SHOWN_NAMES.get(kind, kind)}"
            if kind == "ephemeral":
                template = volume[kind].get("volumeClaimTemplate") or {}
                warnings += claim_spec_warnings(template.get("spec") or {}, f"{here}.volumeClaimTemplate.spec")
            else:
                warnings.append(f"{here}: {advice}")
    return warnings


def overlap_warnings(volumes: Sequence[Document]) -> list[str]:
    """Files of one volume at the same path, or one below the other."""
    warnings: list[str] = []
    for volume in volumes:
        name = quoted(volume.get("name", ""))
        for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
            source = volume.get(kind)
            if source is None:
                continue
            called = source.get("secretName" if kind == "secret" else "name", "")
            whole = f"{shown} {quoted(called)}" if kind != "downwardAPI" else shown
            files = [_File(item.get("path", ""), "") for item in source.get("items") or ()]
            warnings += [f"volume {name} ({whole}): overlapping paths: {text}" for text in _overlaps(files)]
        if volume.get("projected") is not None:
            warnings += _projected_warnings(volume["projected"], name)
    return warnings


def _projected_warnings(projected: Document, name: str) -> list[str]:
    warnings: list[str] = []
    known: list[_File] = []
    for source in projected.get("sources") or ():
        if not source:
            warnings.append(f"volume {name} (Projected) has no sources provided")
        warnings += [
            f"volume {name} (Projected): overlapping paths: {text}"
            for text in _overlaps(_projected_files(source), known)
        ]
    return warnings


def _projected_files(source: Document) -> list[_File]:
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
        items = (source.get(kind) or {}).get("items")
        if items is not None:
            return [_File(item.get("path", ""), f"{shown} {quoted(source[kind].get('name', ''))}") for item in items]
    items = (source.get("downwardAPI") or {}).get("items")
    if items is not None:
        return [_File(item.get("path", ""), "DownwardAPI") for item in items]
    token = source.get("serviceAccountToken")
    return [_File(token.get("path", ""), "ServiceAccountToken")] if token is not None else []


def _overlaps(files: Sequence[_File], known: list[_File] | None = None) -> list[str]:
    """Each file that lies at or below or above one before it; `known` grows."""
    before = [] if known is None else known
    texts: list[str] = []
    for given in files:
        file = given._replace(path=given.path.rstrip("/"))
        texts += [f"{file} with {other}" for other in before if file.path and other.path and _overlap(file, other)]
        before.append(file)
    return texts


def _overlap(one: _File, other: _File) -> bool:
    return f"{one.path}/".startswith(f"{other.path}/") or f"{other.path}/".startswith(f"{one.path}/")


def pod_template_warnings(template: Document | None, path: str) -> list[str]:
    """Warnings about a template."""
    if template is None:
        return []
    return pod_spec_warnings(template.get("spec") or {}, template.get("metadata") or {}, path)


def pod_spec_warnings(spec: Document, metadata: Document, path: str = "") -> list[str]:
    """Warnings about a spec."""
    prefix = f"{path}." if path else ""
    here, annotations = f"{prefix}spec", metadata.get("annotations") or {}
    warnings = _node_label_warnings(spec, here) if spec.get("nodeSelector") or spec.get("affinity") else []
    warnings += _spread_warnings(spec.get("topologySpreadConstraints") or (), f"{here}.topologySpreadConstraints")
    warnings += [
        f"{prefix}metadata.annotations[{key}]: {advice}"
        for key, advice in _DEPRECATED_ANNOTATIONS.items()
        if key in annotations
    ]
    if spec.get("volumes"):
        warnings += volume_warnings(spec["volumes"], f"{here}.volumes")
        warnings += overlap_warnings(spec["volumes"])
    warnings += _duplicate_warnings(spec.get("hostAliases") or (), "ip", f"{here}.hostAliases")
    warnings += _pull_secret_warnings(spec.get("imagePullSecrets") or (), f"{here}.imagePullSecrets")
    warnings += _fraction_warnings(spec.get("overhead") or {}, f"{here}.overhead")
    if SECCOMP_POD_ANNOTATION in annotations and not (spec.get("securityContext") or {}).get("seccompProfile"):
        warnings.append(f"{prefix}metadata.annotations[{SECCOMP_POD_ANNOTATION}]: {_SECCOMP_ADVICE}")
    for container, place in every_container(spec, here):
        if annotations:
            warnings += _profile_warnings(container, spec, annotations, prefix)
        warnings += _container_warnings(container, place)
    warnings += port_warnings(spec, here)
    grace_s = spec.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s < 0:
        advice = "must be >= 0; negative values are invalid and will be treated as 1"
        warnings.append(f"{here}.terminationGracePeriodSeconds: {advice}")
    warnings += _null_selector_warnings(spec.get("affinity") or {}, f"{here}.affinity")
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        warnings += ip_warnings(server, f"{here}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        warnings += ip_warnings(alias.get("ip", ""), f"{here}.hostAliases[{index}].ip")
    return warnings


def name_warnings(name: str, use: str) -> list[str]:
    """Warnings about a name that is no valid hostname; `use` is its purpose."""
    texts = dns_label_errors(name)
    return [f"metadata.name: {use}; a DNS label is recommended: [{' '.join(texts)}]"] if texts else []


# --- placement --------------------------------------------------------------------------------------------------


def _node_label_warnings(spec: Document, path: str) -> list[str]:
    warnings = [
        f"{path}.nodeSelector[{key}]: {DEPRECATED_NODE_LABELS[key]}"
        for key in spec.get("nodeSelector") or ()
        if key in DEPRECATED_NODE_LABELS
    ]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    here = f"{path}.affinity.nodeAffinity"
    for index, term in enumerate((affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        warnings += node_selector_term_warnings(term, f"{here}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{here}.{_PREFERRED}[{index}].preference"
        warnings += node_selector_term_warnings(weighted.get("preference") or {}, place, checks_values=True)
    return warnings


def _spread_warnings(constraints: Sequence[Document], path: str) -> list[str]:
    warnings: list[str] = []
    for index, constraint in enumerate(constraints):
        key = constraint.get("topologyKey", "")
        if key in DEPRECATED_NODE_LABELS:
            warnings.append(f"{path}[{index}].topologyKey: {key} is {DEPRECATED_NODE_LABELS[key]}")
        if constraint.get("labelSelector") is None:
            warnings.append(f"{path}[{index}].labelSelector: {_NULL_SELECTOR}")
    return warnings


def _null_selector_warnings(affinity: Document, path: str) -> list[str]:
    warnings: list[str] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for index, term in enumerate(terms.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                warnings.append(f"{path}.{kind}.{_REQUIRED}[{index}].labelSelector: {_NULL_SELECTOR}")
        for index, weighted in enumerate(terms.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                here = f"{path}.{kind}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector"
                warnings.append(f"{here}: {_NULL_SELECTOR}")
    return warnings


def _duplicate_warnings(items: Sequence[Document], field: str, path: str) -> list[str]:
    warnings: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(field, "")
        if value in seen:
            warnings.append(f"{path}[{index}].{field}: duplicate {field} {quoted(value)}")
        seen.add(value)
    return warnings


def _pull_secret_warnings(secrets: Sequence[Document], path: str) -> list[str]:
    warnings = _duplicate_warnings(secrets, "name", path)
    return warnings + [
        f'{path}[{index}].name: invalid empty name ""' for index, secret in enumerate(secrets) if not secret.get("name")
    ]


def _fraction_warnings(amounts: Document, path: str) -> list[str]:
    return [
        f"{path}[{name}]: fractional byte value {quoted(amounts[name])} is invalid, must be an integer"
        for name in _BYTES
        if name in amounts and quantity_milli(amounts[name]) % 1000
    ]


def _profile_warnings(container: Document, spec: Document, annotations: Document, prefix: str) -> list[str]:
    context, name = container.get("securityContext") or {}, container.get("name", "")
    warnings: list[str] = []
    key = f"{SECCOMP_CONTAINER_PREFIX}{name}"
    if key in annotations and not context.get("seccompProfile"):
        warnings.append(f"{prefix}metadata.annotations[{key}]: {_SECCOMP_ADVICE}")
    key = f"{APPARMOR_PREFIX}{name}"
    # The warning of a pod's annotation comes from the code that converts it to a field.
    if prefix and key in annotations and not context.get("appArmorProfile"):
        of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
        if of_pod is None or of_pod != apparmor_of_annotation(annotations[key]):
            warnings.append(f"{prefix}metadata.annotations[{key}]: {_APPARMOR_ADVICE}")
    return warnings


def _container_warnings(container: Document, path: str) -> list[str]:
    resources = container.get("resources") or {}
    warnings: list[str] = []
    for name in _BYTES if resources else ():
        for side in ("limits", "requests"):
            amounts = resources.get(side) or {}
            if name in amounts:
                warnings += _fraction_warnings({name: amounts[name]}, f"{path}.resources.{side}")
    variables = container.get("env") or ()
    return warnings + (_hidden_variable_warnings(variables, f"{path}.env") if len(variables) > 1 else [])


def _hidden_variable_warnings(variables: Sequence[Document], path: str) -> list[str]:
    """A variable that is set again without using what it was."""
    warnings: list[str] = []
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        extends = variable.get("valueFrom") is None and value != reference and reference in value
        if name in seen and not extends:
            advice = "which may be dropped when using apply"
            warnings.append(f"{path}[{index}]: hides previous definition of {quoted(name)}, {advice}")
        seen.add(name)
    return warnings
