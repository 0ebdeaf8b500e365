"""Validation of volume sources of pods and persistent volumes: hosts, networks, clouds, drivers.

1. Most sources are deprecated, but the API keeps them and their rules.
2. Of a persistent volume, the first source counts and every further one is forbidden. A FlexVolume is never counted as
   too many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required, too_long
from mooring.apiserver.validation.names import (
    backstep_faults,
    descending_faults,
    dns_label_faults,
    dns_subdomain_faults,
    range_faults,
    range_rule,
)

DRIVER_NAME_LENGTH_MAX = 63
TENANT_LENGTH_MAX = 64

_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_QUALIFIED_NAMES = {
    "iqn": re.compile(r".*iqn\.[0-9]{4}-[0-9]{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)").fullmatch,
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}").fullmatch,
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}").fullmatch,
}
_REGISTRY = "must be a host:port pair or multiple pairs separated by commas"
_MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"

_TOO_LONG_PORTAL = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
_INITIATOR_FORMS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$").search,
    "eui": re.compile("eui.[A-Za-z0-9]{16}").fullmatch,
    "naa": re.compile("naa.[A-Za-z0-9]{32}").fullmatch,
}


def host_path_faults(source: Document, path: str) -> list[Fault]:
    if not source.get("path"):
        return [required(f"{path}.path")]
    faults = backstep_faults(source["path"], f"{path}.path")
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        faults.append(not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return faults


def csi_faults(source: Document, path: str) -> list[Fault]:
    faults = driver_name_faults(source.get("driver", ""), f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is None:
        return faults
    name = secret.get("name", "")
    if not name:
        return [*faults, required(f"{path}.nodePublishSecretRef.name")]
    return faults + [invalid(f"{path}.name", name, text) for text in dns_subdomain_faults(name)]


def driver_name_faults(name: str, path: str) -> list[Fault]:
    """The name of a CSI driver; capital letters are allowed."""
    if not name:
        return [required(path)]
    faults = [too_long(path, DRIVER_NAME_LENGTH_MAX)] if len(name.encode()) > DRIVER_NAME_LENGTH_MAX else []
    return faults + [invalid(path, name, text) for text in dns_subdomain_faults(name.lower())]


def iscsi_faults(source: Document, path: str) -> list[Fault]:
    faults = [] if source.get("targetPortal") else [required(f"{path}.targetPortal")]
    name, initiator = source.get("iqn", ""), source.get("initiatorName")
    if not name:
        faults.append(required(f"{path}.iqn"))
    else:
        faults += _qualified_name_faults(name, f"{path}.iqn")
    faults += [
        invalid(f"{path}.lun", source.get("lun", 0), text) for text in range_faults(source.get("lun", 0), 0, 255)
    ]
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        faults.append(required(f"{path}.secretRef"))
    if initiator is not None:
        faults += _qualified_name_faults(initiator, f"{path}.initiatorname")
    return faults


# --- the rarer ones ---------------------------------------------------------------------------------------------


def _qualified_name_faults(name: str, path: str) -> list[Fault]:
    is_match = _QUALIFIED_NAMES.get(name[:3])
    if is_match is None:
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if is_match(name) else [invalid(path, name, "must be valid format")]


def _git_repo_faults(source: Document, path: str) -> list[Fault]:
    faults = [] if source.get("repository") else [required(f"{path}.repository")]
    return faults + descending_faults(source.get("directory", ""), f"{path}.directory")


def _disk_faults(field: str) -> Callable[[Document, str], list[Fault]]:
    def faults_of(source: Document, path: str) -> list[Fault]:
        faults = [] if source.get(field) else [required(f"{path}.{field}")]
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            faults.append(invalid(f"{path}.partition", partition, range_rule(1, 255)))
        return faults

    return faults_of


def _needs(*fields: str) -> Callable[[Document, str], list[Fault]]:
    """A source with fields that must be there, and no other rule."""

    def faults_of(source: Document, path: str) -> list[Fault]:
        return [required(f"{path}.{field}") for field in fields if not source.get(field)]

    return faults_of


def _nfs_faults(source: Document, path: str) -> list[Fault]:
    faults = [required(f"{path}.{field}") for field in ("server", "path") if not source.get(field)]
    if not source.get("path", "").startswith("/"):
        faults.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return faults


def _flocker_faults(source: Document, path: str) -> list[Fault]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    faults: list[Fault] = []
    if not name and not uuid:
        faults.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        faults.append(invalid(path, "resource", detail))
    if "/" in name:
        faults.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return faults


def _cinder_faults(source: Document, path: str) -> list[Fault]:
    faults = [] if source.get("volumeID") else [required(f"{path}.volumeID")]
    return faults + _secret_faults(source, path)


def _secret_faults(source: Document, path: str) -> list[Fault]:
    secret = source.get("secretRef")
    return [required(f"{path}.secretRef.name")] if secret is not None and not secret.get("name") else []


def _quobyte_faults(source: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    registry = source.get("registry", "")
    if not registry:
        faults.append(required(f"{path}.registry", _REGISTRY))
    elif len(source.get("tenant", "").encode()) > TENANT_LENGTH_MAX:
        detail = f"must be a UUID and may not exceed a length of {TENANT_LENGTH_MAX} characters"
        faults.append(required(f"{path}.tenant", detail))
    else:
        pairs = registry.split(",")
        faults += [invalid(f"{path}.registry", registry, _REGISTRY) for pair in pairs if not _is_host_port(pair)]
    if not source.get("volume"):
        faults.append(required(f"{path}.volume"))
    return faults


def _is_host_port(pair: str) -> bool:
    host, colon, _ = pair.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    return bool(colon) and (is_bracketed or ":" not in host)


def _fc_faults(source: Document, path: str) -> list[Fault]:
    targets, identifiers, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    faults: list[Fault] = []
    if not targets and not identifiers:
        detail = "must specify either targetWWNs or wwids, but not both"
        faults.append(required(f"{path}.targetWWNs", detail))
    if targets and identifiers:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        faults.append(invalid(f"{path}.targetWWNs", targets, detail))
    if not targets:
        return faults
    if lun is None:
        return [*faults, required(f"{path}.lun", "lun is required if targetWWNs is specified")]
    return faults + [invalid(f"{path}.lun", lun, text) for text in range_faults(lun, 0, 255)]


def _flex_faults(source: Document, path: str) -> list[Fault]:
    faults = [] if source.get("driver") else [required(f"{path}.driver")]
    for key in source.get("options") or ():
        owner = f".{key.partition('/')[0].lower()}"
        if owner.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            faults.append(invalid(f"{path}.options[{key}]", key, detail))
    return faults


def _azure_disk_faults(source: Document, path: str) -> list[Fault]:
    faults = [required(f"{path}.{field}") for field in ("diskName", "diskURI") if not source.get(field)]
    caching, kind, address = source.get("cachingMode"), source.get("kind"), source.get("diskURI", "")
    cachings, kinds = ("None", "ReadOnly", "ReadWrite"), ("Dedicated", "Managed", "Shared")
    if caching is not None and caching not in cachings:
        faults.append(not_supported(f"{path}.cachingMode", caching, cachings))
    if kind is not None and kind not in kinds:
        faults.append(not_supported(f"{path}.kind", kind, kinds))
    if kind == "Managed" and not address.startswith("/subscriptions/"):
        faults.append(not_supported(f"{path}.diskURI", address, [_MANAGED_DISK]))
    if kind is not None and kind != "Managed" and not address.startswith("https://"):
        faults.append(not_supported(f"{path}.diskURI", address, [_BLOB_DISK]))
    return faults


def _storage_os_faults(source: Document, path: str) -> list[Fault]:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    faults = [] if name else [required(f"{path}.volumeName")]
    for field, value in (("volumeName", name), ("volumeNamespace", namespace)):
        faults += [invalid(f"{path}.{field}", value, text) for text in (dns_label_faults(value) if value else ())]
    return faults + _secret_faults(source, path)


NAMED_SOURCES: Mapping[str, Callable[[Document, str], list[Fault]]] = {
    "gitRepo": _git_repo_faults,
    "gcePersistentDisk": _disk_faults("pdName"),
    "awsElasticBlockStore": _disk_faults("volumeID"),
    "nfs": _nfs_faults,
    "iscsi": iscsi_faults,
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _flocker_faults,
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _cinder_faults,
    "cephfs": _needs("monitors"),
    "quobyte": _quobyte_faults,
    "fc": _fc_faults,
    "flexVolume": _flex_faults,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk_faults,
    "storageos": _storage_os_faults,
    "scaleIO": _needs("gateway", "system", "volumeName"),
}
"""The sources with rules of their own that need nothing but the source."""


csi_driver_name_faults = driver_name_faults


def sources_faults(spec: Document, volume_name: str, path: str, has_affinity: bool) -> list[Fault]:
    faults: list[Fault] = []
    is_found = False
    for field, check in PERSISTENT_SOURCES.items():
        source = spec.get(field)
        if source is None:
            continue
        if is_found and field != "flexVolume":
            shown = "cephFS" if field == "cephfs" else field
            faults.append(forbidden(f"{path}.{shown}", "may not specify more than 1 volume type"))
            continue
        is_found = True
        faults += check(source, f"{path}.{'persistentDisk' if field == 'gcePersistentDisk' else field}")
        if field == "iscsi":
            faults += _initiator_faults(source, volume_name, f"{path}.iscsi")
        if field == "local" and not has_affinity:
            faults.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    if not is_found:
        faults.append(required(path, "must specify a volume type"))
    return faults


# --- sources ----------------------------------------------------------------------------------------------------


def _filled(*fields: str) -> Callable[[Document, str], list[Fault]]:
    """A source that is right as soon as some fields are filled."""
    return lambda source, path: [required(f"{path}.{field}") for field in fields if not source.get(field)]


def _persistent_glusterfs_faults(source: Document, path: str) -> list[Fault]:
    faults = _filled("endpoints", "path")(source, path)
    namespace = source.get("endpointsNamespace")
    here = f"{path}.endpointsNamespace"
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        faults.append(invalid(here, namespace, detail))
    elif namespace is not None:
        faults += [invalid(here, namespace, text) for text in dns_label_faults(namespace)]
    return faults


def _iscsi_faults(source: Document, path: str) -> list[Fault]:
    """The rest of the faults, which come last, need the name of the volume: `_initiator_faults`."""
    return [] if source.get("targetPortal") else [required(f"{path}.targetPortal")]


def _initiator_faults(source: Document, volume_name: str, path: str) -> list[Fault]:
    faults: list[Fault] = []
    portal, iqn, initiator = source.get("targetPortal", ""), source.get("iqn", ""), source.get("initiatorName")
    if initiator is not None and len(f"{volume_name}:{portal}".encode()) > 64:
        faults.append(invalid(f"{path}.targetportal", portal, _TOO_LONG_PORTAL))
    if not iqn:
        faults.append(required(f"{path}.iqn"))
    elif not _is_initiator(iqn):
        faults.append(invalid(f"{path}.iqn", iqn, "must be valid format"))
    lun = source.get("lun", 0)
    if not 0 <= lun <= 255:
        faults.append(invalid(f"{path}.lun", lun, range_rule(0, 255)))
    secret = source.get("secretRef")
    if secret is None and (source.get("chapAuthDiscovery") or source.get("chapAuthSession")):
        faults.append(required(f"{path}.secretRef"))
    if secret is not None and not secret.get("name"):
        faults.append(required(f"{path}.secretRef.name"))
    if initiator is not None and not _is_initiator(initiator):
        faults.append(invalid(f"{path}.initiatorname", initiator, "must be valid format"))
    return faults


def _persistent_cinder_faults(source: Document, path: str) -> list[Fault]:
    return _filled("volumeID")(source, path) + _secret_filled_faults(source, path)


def _azure_file_faults(source: Document, path: str) -> list[Fault]:
    faults = _filled("secretName", "shareName")(source, path)
    if source.get("secretNamespace") == "":
        faults.append(required(f"{path}.secretNamespace"))
    return faults


def _local_faults(source: Document, path: str) -> list[Fault]:
    written = source.get("path", "")
    return backstep_faults(written, f"{path}.path") if written else [required(f"{path}.path")]


def _persistent_storage_os_faults(source: Document, path: str) -> list[Fault]:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    faults = _filled("volumeName")(source, path)
    if name:
        faults += [invalid(f"{path}.volumeName", name, text) for text in dns_label_faults(name)]
    if namespace:
        faults += [invalid(f"{path}.volumeNamespace", namespace, text) for text in dns_label_faults(namespace)]
    return faults + _secret_filled_faults(source, path)


def _csi_faults(source: Document, path: str) -> list[Fault]:
    faults = csi_driver_name_faults(source.get("driver", ""), f"{path}.driver")
    faults += _filled("volumeHandle")(source, path)
    references = (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    )
    for field in references:
        if field in source:
            faults += _secret_reference_faults(source[field], f"{path}.{field}")
    return faults


def _secret_filled_faults(source: Document, path: str) -> list[Fault]:
    secret = source.get("secretRef")
    return _filled("name", "namespace")(secret, f"{path}.secretRef") if secret is not None else []


def _secret_reference_faults(reference: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for field, check in (("name", dns_subdomain_faults), ("namespace", dns_label_faults)):
        value = reference.get(field, "")
        if value:
            faults += [invalid(f"{path}.{field}", value, text) for text in check(value)]
        else:
            faults.append(required(f"{path}.{field}"))
    return faults


def _is_initiator(name: str) -> bool:
    form = _INITIATOR_FORMS.get(name[:3])
    return form is not None and form(name) is not None


PERSISTENT_SOURCES: Mapping[str, Callable[[Document, str], list[Fault]]] = {
    "hostPath": host_path_faults,
    "gcePersistentDisk": NAMED_SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": NAMED_SOURCES["awsElasticBlockStore"],
    "glusterfs": _persistent_glusterfs_faults,
    "flocker": NAMED_SOURCES["flocker"],
    "nfs": NAMED_SOURCES["nfs"],
    "rbd": NAMED_SOURCES["rbd"],
    "quobyte": NAMED_SOURCES["quobyte"],
    "cephfs": NAMED_SOURCES["cephfs"],
    "iscsi": _iscsi_faults,
    "cinder": _persistent_cinder_faults,
    "fc": NAMED_SOURCES["fc"],
    "flexVolume": NAMED_SOURCES["flexVolume"],
    "azureFile": _azure_file_faults,
    "vsphereVolume": NAMED_SOURCES["vsphereVolume"],
    "photonPersistentDisk": NAMED_SOURCES["photonPersistentDisk"],
    "portworxVolume": NAMED_SOURCES["portworxVolume"],
    "azureDisk": NAMED_SOURCES["azureDisk"],
    "scaleIO": NAMED_SOURCES["scaleIO"],
    "local": _local_faults,
    "storageos": _persistent_storage_os_faults,
    "csi": _csi_faults,
}
"""In the order in which they are looked at. What pods can also use directly is judged as for pods."""
