"""What is wrong with the volumes that a container mounts, and with the devices that it uses.

Comes in   `volumeMounts` and `volumeDevices` of a container, and the volumes of its pod
Goes out   faults

 1. Only volumes without faults of their own can be mounted: `volumes` holds no others.
 2. Some paths lack the index of the mount. That is how kube-apiserver tells them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_found, not_supported, required
from mooring.apiserver.validation.names import backstep_faults, descending_faults

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")


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
