"""Validation of a container's environment, volume mounts and volume devices.

1. `volumes` holds only valid volumes, and only those can be mounted.
2. Some paths lack the index of the mount, as in kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.quantity import parse_quantity
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_found, not_supported, required
from mooring.apiserver.validation.metadata import name_is_dns_subdomain
from mooring.apiserver.validation.names import (
    backstep_faults,
    config_key_faults,
    descending_faults,
    dns_label_faults,
    dns_subdomain_faults,
    qualified_name_faults,
    relaxed_environment_name_faults,
)

ENVIRONMENT_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
FILE_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_KNOWN_FIELDS = {
    *ENVIRONMENT_FIELDS,
    *FILE_FIELDS,
    "spec.host",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
}
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SOURCES = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")


def environment_faults(variables: Sequence[Document], path: str) -> list[Fault]:
    """What is wrong with `env`."""
    faults: list[Fault] = []
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            faults.append(required(f"{path}[{index}].name"))
        else:
            faults += [invalid(f"{path}[{index}].name", name, text) for text in relaxed_environment_name_faults(name)]
        if variable.get("valueFrom") is not None:
            faults += _environment_source_faults(variable, f"{path}[{index}].valueFrom")
    return faults


def environment_imports_faults(imports: Sequence[Document], path: str) -> list[Fault]:
    """What is wrong with `envFrom`."""
    faults: list[Fault] = []
    for index, each in enumerate(imports):
        here, prefix = f"{path}[{index}]", each.get("prefix")
        if prefix:
            faults += [invalid(f"{here}.prefix", prefix, text) for text in relaxed_environment_name_faults(prefix)]
        sources = [kind for kind in ("configMapRef", "secretRef") if each.get(kind) is not None]
        for kind in sources:
            faults += _import_faults(each[kind].get("name", ""), f"{here}.{kind}.name")
        if not sources:
            faults.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(sources) > 1:
            faults.append(invalid(path, "", "may not have more than one field specified at a time"))
    return faults


def field_reference_faults(reference: Document, choices: Sequence[str], path: str) -> list[Fault]:
    """What is wrong with a reference to a field of the pod."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    if version != "v1":
        detail = f"error converting fieldPath: unsupported pod version: {version}"
        return [invalid(f"{path}.fieldPath", field, detail)]
    whole, subscript = _split_subscript(field)
    if subscript is not None:
        if whole not in ("metadata.annotations", "metadata.labels"):
            detail = f"error converting fieldPath: field label does not support subscript: {field}"
            return [invalid(f"{path}.fieldPath", field, detail)]
        key = subscript.lower() if whole == "metadata.annotations" else subscript
        return [invalid(path, key, text) for text in qualified_name_faults(key)]
    if field not in _KNOWN_FIELDS:
        detail = f"error converting fieldPath: field label not supported: {field}"
        return [invalid(f"{path}.fieldPath", field, detail)]
    meant = "spec.nodeName" if field == "spec.host" else field
    return [] if meant in choices else [not_supported(f"{path}.fieldPath", meant, choices)]


def resource_reference_faults(reference: Document, path: str, needs_container: bool) -> list[Fault]:
    """What is wrong with a reference to a container's request or limit."""
    faults: list[Fault] = []
    resource = reference.get("resource", "")
    if needs_container and not reference.get("containerName"):
        faults.append(required(f"{path}.containerName"))
    elif not resource:
        faults.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        faults.append(not_supported(f"{path}.resource", resource, _RESOURCES))
    return faults + _divisor_faults(resource, reference.get("divisor"), f"{path}.divisor")


# --- parts ------------------------------------------------------------------------------------------------------


def _environment_source_faults(variable: Document, path: str) -> list[Fault]:
    source = variable["valueFrom"]
    faults: list[Fault] = []
    if source.get("fieldRef") is not None:
        faults += field_reference_faults(source["fieldRef"], ENVIRONMENT_FIELDS, f"{path}.fieldRef")
    if source.get("resourceFieldRef") is not None:
        faults += resource_reference_faults(source["resourceFieldRef"], f"{path}.resourceFieldRef", False)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if source.get(kind) is not None:
            faults += _environment_key_faults(source[kind], f"{path}.{kind}")
    if source.get("fileKeyRef") is not None:
        faults += _file_key_faults(source["fileKeyRef"], f"{path}.fileKeyRef")
    count = sum(each is not None for each in source.values())
    if not count:
        faults.append(invalid(path, "", f"must specify one of: {_SOURCES}"))
    elif variable.get("value"):
        faults.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        faults.append(invalid(path, "", "may not have more than one field specified at a time"))
    return faults


def _environment_key_faults(reference: Document, path: str) -> list[Fault]:
    name, key = reference.get("name", ""), reference.get("key", "")
    faults = [invalid(f"{path}.name", name, text) for text in dns_subdomain_faults(name)]
    if not key:
        faults.append(required(f"{path}.key"))
    else:
        faults += [invalid(f"{path}.key", key, text) for text in config_key_faults(key)]
    return faults


def _file_key_faults(reference: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    key, volume, file = (reference.get(field, "") for field in ("key", "volumeName", "path"))
    if not key:
        faults.append(required(f"{path}.key"))
    faults += [invalid(f"{path}.key", key, text) for text in (relaxed_environment_name_faults(key) if key else ())]
    if not volume:
        faults.append(required(f"{path}.volumeName"))
    faults += [invalid(f"{path}.volumeName", volume, text) for text in (dns_label_faults(volume) if volume else ())]
    if not file:
        faults.append(required(f"{path}.path"))
    return faults + backstep_faults(file, f"{path}.path")


def _import_faults(name: str, path: str) -> list[Fault]:
    if not name:
        return [required(path)]
    return [invalid(path, name, text) for text in name_is_dns_subdomain(name, True)]


def _split_subscript(field: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` is `metadata.labels` and `a`; a field without a subscript has None."""
    if not field.endswith("']"):
        return field, None
    whole, opening, subscript = field[:-2].partition("['")
    return (whole, subscript) if whole and opening else (field, None)


def _divisor_faults(resource: str, divisor: str | None, path: str) -> list[Fault]:
    if divisor is None or not parse_quantity(divisor):
        return []
    side, _, name = resource.partition(".")
    if side not in ("limits", "requests"):
        return []
    if name == "cpu":
        detail = "only divisor's values 1m and 1 are supported with the cpu resource"
        return [] if divisor in ("1m", "1") else [invalid(path, resource, detail)]
    called = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(name)
    if called is None and name.startswith("hugepages-"):
        called = "hugepages"
    if called is None or divisor in _BYTE_DIVISORS:
        return []
    detail = f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {called} resource"
    return [invalid(path, resource, detail)]


def mounts_faults(container: Document, volumes: Mapping[str, Document], path: str) -> list[Fault]:
    """What is wrong with `volumeMounts`."""
    mounts: Sequence[Document] = container.get("volumeMounts") or ()
    if not mounts:
        return []
    faults: list[Fault] = []
    devices = {device.get("name", ""): device.get("devicePath", "") for device in container.get("volumeDevices") or ()}
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        here, name, mount_path = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            faults.append(required(f"{here}.name"))
        if name not in volumes:
            faults.append(not_found(f"{here}.name", name))
        if not mount_path:
            faults.append(required(f"{here}.mountPath"))
        if mount_path in taken:
            faults.append(invalid(f"{here}.mountPath", mount_path, "must be unique"))
        taken.add(mount_path)
        if name in devices:
            faults.append(invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if mount_path in devices.values():
            detail = "must not already exist as a path in volumeDevices"
            faults.append(invalid(f"{here}.mountPath", mount_path, detail))
        faults += _sub_path_faults(mount, here, path)
        faults += _propagation_faults(mount, container, f"{path}.mountPropagation")
        faults += _recursion_faults(mount, f"{path}.recursiveReadOnly")
    return faults


def devices_faults(container: Document, volumes: Mapping[str, Document], path: str) -> list[Fault]:
    """What is wrong with `volumeDevices`."""
    devices: Sequence[Document] = container.get("volumeDevices") or ()
    if not devices:
        return []
    faults: list[Fault] = []
    mounts = {mount.get("name", ""): mount.get("mountPath", "") for mount in container.get("volumeMounts") or ()}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        name, device_path = device.get("name", ""), device.get("devicePath", "")
        faults += _device_name_faults(name, names, volumes, f"{path}[{index}].name")
        faults += _device_path_faults(device_path, paths, f"{path}[{index}].devicePath")
        if name in mounts:
            faults.append(invalid(f"{path}[{index}].name", name, "must not already exist in volumeMounts"))
        if device_path in mounts.values():
            detail = "must not already exist as a path in volumeMounts"
            faults.append(invalid(f"{path}[{index}].devicePath", device_path, detail))
        if name:
            names.add(name)
    return faults


# --- parts ------------------------------------------------------------------------------------------------------


def _sub_path_faults(mount: Document, here: str, path: str) -> list[Fault]:
    faults: list[Fault] = []
    plain, expression = mount.get("subPath"), mount.get("subPathExpr")
    if plain:
        faults += descending_faults(plain, f"{path}.subPath")
    if expression:
        if plain:
            detail = "subPathExpr and subPath are mutually exclusive"
            faults.append(invalid(f"{here}.subPathExpr", expression, detail))
        faults += descending_faults(expression, f"{path}.subPathExpr")
    return faults


def _propagation_faults(mount: Document, container: Document, path: str) -> list[Fault]:
    propagation = mount.get("mountPropagation")
    if propagation is None:
        return []
    if propagation not in _PROPAGATIONS:
        return [not_supported(path, propagation, _PROPAGATIONS)]
    is_privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not is_privileged:
        return [forbidden(path, "Bidirectional mount propagation is available only to privileged containers")]
    return []


def _recursion_faults(mount: Document, path: str) -> list[Fault]:
    recursion = mount.get("recursiveReadOnly")
    if recursion is None or recursion == "Disabled":
        return []
    if recursion not in _RECURSIONS:
        return [not_supported(path, recursion, _RECURSIONS)]
    faults = []
    if not mount.get("readOnly"):
        faults.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation", "None") != "None":
        faults.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return faults


def _device_name_faults(name: str, names: set[str], volumes: Mapping[str, Document], path: str) -> list[Fault]:
    faults: list[Fault] = []
    if not name:
        faults.append(required(path))
    if name in names:
        faults.append(invalid(path, name, "must be unique"))
    volume = volumes.get(name)
    if volume is None:
        faults.append(not_found(path, name))
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        faults.append(invalid(path, name, detail))
    return faults


def _device_path_faults(device_path: str, paths: set[str], path: str) -> list[Fault]:
    faults: list[Fault] = []
    if not device_path:
        faults.append(required(path))
    if device_path in paths:
        faults.append(invalid(path, device_path, "must be unique"))
    if backstep_faults(device_path, path):
        faults.append(invalid(path, device_path, "can not contain backsteps ('..')"))
    else:
        paths.add(device_path)
    return faults
