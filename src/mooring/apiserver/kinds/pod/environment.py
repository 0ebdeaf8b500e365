"""Validation of a container's environment, volume mounts and volume devices.

1. `volumes` holds only valid volumes, and only those can be mounted.
2. Some paths lack the index of the mount, as in kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.quantity import parse_quantity
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, not_found, not_supported, required
from mooring.apiserver.validation.metadata import name_is_dns_subdomain
from mooring.apiserver.validation.names import (
    dns_subdomain_errors,
    qualified_name_errors,
    validate_descending_path,
    validate_no_backsteps,
)
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules

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

_VARIABLE = struct_rules("core", "EnvVar")
_IMPORT = struct_rules("core", "EnvFromSource")
_KEY = struct_rules("core", "ConfigMapKeySelector")
_FILE_KEY = struct_rules("core", "FileKeySelector")
_MOUNT = struct_rules("core", "VolumeMount")
_PROPAGATIONS = sorted_enum_values("core", "MountPropagationMode")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")


def validate_environment(variables: Sequence[Document], path: str) -> list[FieldError]:
    """Field errors of `env`."""
    errors: list[FieldError] = []
    for index, variable in enumerate(variables):
        errors += _VARIABLE.validate(variable, f"{path}[{index}]")
        if variable.get("valueFrom") is not None:
            errors += _validate_environment_source(variable, f"{path}[{index}].valueFrom")
    return errors


def validate_environment_imports(imports: Sequence[Document], path: str) -> list[FieldError]:
    """Field errors of `envFrom`."""
    errors: list[FieldError] = []
    for index, env_from in enumerate(imports):
        here = f"{path}[{index}]"
        errors += _IMPORT.validate(env_from, here)
        sources = [kind for kind in ("configMapRef", "secretRef") if env_from.get(kind) is not None]
        for kind in sources:
            errors += _validate_import(env_from[kind].get("name", ""), f"{here}.{kind}.name")
        if not sources:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(sources) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def validate_field_reference(reference: Document, choices: Sequence[str], path: str) -> list[FieldError]:
    """Field errors of a reference to a field of the pod."""
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
        return [invalid(path, key, text) for text in qualified_name_errors(key)]
    if field not in _KNOWN_FIELDS:
        detail = f"error converting fieldPath: field label not supported: {field}"
        return [invalid(f"{path}.fieldPath", field, detail)]
    meant = "spec.nodeName" if field == "spec.host" else field
    return [] if meant in choices else [not_supported(f"{path}.fieldPath", meant, choices)]


def validate_resource_reference(reference: Document, path: str, needs_container: bool) -> list[FieldError]:
    """Field errors of a reference to a container's request or limit."""
    errors: list[FieldError] = []
    resource = reference.get("resource", "")
    if needs_container and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.append(not_supported(f"{path}.resource", resource, _RESOURCES))
    return errors + _validate_divisor(resource, reference.get("divisor"), f"{path}.divisor")


def _validate_environment_source(variable: Document, path: str) -> list[FieldError]:
    source = variable["valueFrom"]
    errors: list[FieldError] = []
    if source.get("fieldRef") is not None:
        errors += validate_field_reference(source["fieldRef"], ENVIRONMENT_FIELDS, f"{path}.fieldRef")
    if source.get("resourceFieldRef") is not None:
        errors += validate_resource_reference(source["resourceFieldRef"], f"{path}.resourceFieldRef", False)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if source.get(kind) is not None:
            errors += _validate_environment_key(source[kind], f"{path}.{kind}")
    if source.get("fileKeyRef") is not None:
        errors += _FILE_KEY.validate(source["fileKeyRef"], f"{path}.fileKeyRef", "key", "volumeName", "path")
    count = sum(value is not None for value in source.values())
    if not count:
        errors.append(invalid(path, "", f"must specify one of: {_SOURCES}"))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _validate_environment_key(reference: Document, path: str) -> list[FieldError]:
    name = reference.get("name", "")
    errors = [invalid(f"{path}.name", name, text) for text in dns_subdomain_errors(name)]
    return errors + _KEY.validate(reference, path, "key")


def _validate_import(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    return [invalid(path, name, text) for text in name_is_dns_subdomain(name, True)]


def _split_subscript(field: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` is `metadata.labels` and `a`; a field without a subscript has None."""
    if not field.endswith("']"):
        return field, None
    whole, opening, subscript = field[:-2].partition("['")
    return (whole, subscript) if whole and opening else (field, None)


def _validate_divisor(resource: str, divisor: str | None, path: str) -> list[FieldError]:
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


def validate_mounts(container: Document, volumes: Mapping[str, Document], path: str) -> list[FieldError]:
    """Field errors of `volumeMounts`."""
    mounts: Sequence[Document] = container.get("volumeMounts") or ()
    if not mounts:
        return []
    errors: list[FieldError] = []
    devices = {device.get("name", ""): device.get("devicePath", "") for device in container.get("volumeDevices") or ()}
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        here, name, mount_path = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        errors += _MOUNT.validate(mount, here, "name")
        if name not in volumes:
            errors.append(not_found(f"{here}.name", name))
        errors += _MOUNT.validate(mount, here, "mountPath")
        if mount_path in taken:
            errors.append(invalid(f"{here}.mountPath", mount_path, "must be unique"))
        taken.add(mount_path)
        if name in devices:
            errors.append(invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if mount_path in devices.values():
            detail = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{here}.mountPath", mount_path, detail))
        errors += _validate_sub_path(mount, here, path)
        errors += _validate_propagation(mount, container, f"{path}.mountPropagation")
        errors += _validate_recursion(mount, f"{path}.recursiveReadOnly")
    return errors


def validate_devices(container: Document, volumes: Mapping[str, Document], path: str) -> list[FieldError]:
    """Field errors of `volumeDevices`."""
    devices: Sequence[Document] = container.get("volumeDevices") or ()
    if not devices:
        return []
    errors: list[FieldError] = []
    mounts = {mount.get("name", ""): mount.get("mountPath", "") for mount in container.get("volumeMounts") or ()}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        name, device_path = device.get("name", ""), device.get("devicePath", "")
        errors += _validate_device_name(name, names, volumes, f"{path}[{index}].name")
        errors += _validate_device_path(device_path, paths, f"{path}[{index}].devicePath")
        if name in mounts:
            errors.append(invalid(f"{path}[{index}].name", name, "must not already exist in volumeMounts"))
        if device_path in mounts.values():
            detail = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{path}[{index}].devicePath", device_path, detail))
        if name:
            names.add(name)
    return errors


def _validate_sub_path(mount: Document, here: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    plain, expression = mount.get("subPath"), mount.get("subPathExpr")
    if plain:
        errors += validate_descending_path(plain, f"{path}.subPath")
    if expression:
        if plain:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{here}.subPathExpr", expression, detail))
        errors += validate_descending_path(expression, f"{path}.subPathExpr")
    return errors


def _validate_propagation(mount: Document, container: Document, path: str) -> list[FieldError]:
    propagation = mount.get("mountPropagation")
    if propagation is None:
        return []
    if propagation not in _PROPAGATIONS:
        return [not_supported(path, propagation, _PROPAGATIONS)]
    is_privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not is_privileged:
        return [forbidden(path, "Bidirectional mount propagation is available only to privileged containers")]
    return []


def _validate_recursion(mount: Document, path: str) -> list[FieldError]:
    recursion = mount.get("recursiveReadOnly")
    if recursion is None or recursion == "Disabled":
        return []
    if recursion not in _RECURSIONS:
        return [not_supported(path, recursion, _RECURSIONS)]
    errors = []
    if not mount.get("readOnly"):
        errors.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation", "None") != "None":
        errors.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))
    return errors


def _validate_device_name(name: str, names: set[str], volumes: Mapping[str, Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not name:
        errors.append(required(path))
    if name in names:
        errors.append(invalid(path, name, "must be unique"))
    volume = volumes.get(name)
    if volume is None:
        errors.append(not_found(path, name))
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        errors.append(invalid(path, name, detail))
    return errors


def _validate_device_path(device_path: str, paths: set[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not device_path:
        errors.append(required(path))
    if device_path in paths:
        errors.append(invalid(path, device_path, "must be unique"))
    if validate_no_backsteps(device_path, path):
        errors.append(invalid(path, device_path, "can not contain backsteps ('..')"))
    else:
        paths.add(device_path)
    return errors
