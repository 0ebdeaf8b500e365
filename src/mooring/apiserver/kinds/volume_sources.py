"""Validation of volume sources of pods and persistent volumes: hosts, networks, clouds, drivers.

1. Most sources are deprecated, but the API keeps them and their rules.
2. Of a persistent volume, the first source counts and every further one is forbidden. A FlexVolume is never counted as
   too many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mooring.api.document import Document
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, not_supported, required, too_long
from mooring.apiserver.validation.names import dns_label_errors, dns_subdomain_errors, range_errors, range_rule
from mooring.apiserver.validation.schema_rules import struct_rules, validate_required

DRIVER_NAME_LENGTH_MAX = 63
TENANT_LENGTH_MAX = 64

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


def validate_host_path(source: Document, path: str) -> list[FieldError]:
    rules = struct_rules("core", "HostPathVolumeSource")
    return rules.validate(source, path) if source.get("path") else rules.validate(source, path, "path")


def validate_csi(source: Document, path: str) -> list[FieldError]:
    errors = validate_driver_name(source.get("driver", ""), f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is None:
        return errors
    name = secret.get("name", "")
    if not name:
        return [*errors, required(f"{path}.nodePublishSecretRef.name")]
    return errors + [invalid(f"{path}.name", name, text) for text in dns_subdomain_errors(name)]


def validate_driver_name(name: str, path: str) -> list[FieldError]:
    """The name of a CSI driver; capital letters are allowed."""
    if not name:
        return [required(path)]
    errors = [too_long(path, DRIVER_NAME_LENGTH_MAX)] if len(name.encode()) > DRIVER_NAME_LENGTH_MAX else []
    return errors + [invalid(path, name, text) for text in dns_subdomain_errors(name.lower())]


def validate_iscsi(source: Document, path: str) -> list[FieldError]:
    errors = struct_rules("core", "ISCSIVolumeSource").validate(source, path)
    name, initiator = source.get("iqn", ""), source.get("initiatorName")
    if not name:
        errors.append(required(f"{path}.iqn"))
    else:
        errors += _validate_qualified_name(name, f"{path}.iqn")
    errors += [
        invalid(f"{path}.lun", source.get("lun", 0), text) for text in range_errors(source.get("lun", 0), 0, 255)
    ]
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        errors.append(required(f"{path}.secretRef"))
    if initiator is not None:
        errors += _validate_qualified_name(initiator, f"{path}.initiatorname")
    return errors


# --- other sources -----------------------------------------------------------------------------------------------


def _validate_qualified_name(name: str, path: str) -> list[FieldError]:
    is_match = _QUALIFIED_NAMES.get(name[:3])
    if is_match is None:
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if is_match(name) else [invalid(path, name, "must be valid format")]


def _validate_disk(struct_name: str) -> Callable[[Document, str], list[FieldError]]:
    rules = struct_rules("core", struct_name)

    def validate(source: Document, path: str) -> list[FieldError]:
        errors = rules.validate(source, path)
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            errors.append(invalid(f"{path}.partition", partition, range_rule(1, 255)))
        return errors

    return validate


def _by_schema(struct_name: str) -> Callable[[Document, str], list[FieldError]]:
    """Validates a source by the schema alone."""
    return struct_rules("core", struct_name).validate


def _validate_nfs(source: Document, path: str) -> list[FieldError]:
    errors = struct_rules("core", "NFSVolumeSource").validate(source, path)
    if not source.get("path", "").startswith("/"):
        errors.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return errors


def _validate_flocker(source: Document, path: str) -> list[FieldError]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    errors: list[FieldError] = []
    if not name and not uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(path, "resource", detail))
    if "/" in name:
        errors.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return errors


def _validate_cinder(source: Document, path: str) -> list[FieldError]:
    return struct_rules("core", "CinderVolumeSource").validate(source, path) + _validate_secret(source, path)


def _validate_secret(source: Document, path: str) -> list[FieldError]:
    secret = source.get("secretRef")
    rules = struct_rules("core", "LocalObjectReference")
    return rules.validate(secret, f"{path}.secretRef") if secret is not None else []


def _validate_quobyte(source: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    registry = source.get("registry", "")
    if not registry:
        errors.append(required(f"{path}.registry", _REGISTRY))
    elif len(source.get("tenant", "").encode()) > TENANT_LENGTH_MAX:
        detail = f"must be a UUID and may not exceed a length of {TENANT_LENGTH_MAX} characters"
        errors.append(required(f"{path}.tenant", detail))
    else:
        pairs = registry.split(",")
        errors += [invalid(f"{path}.registry", registry, _REGISTRY) for pair in pairs if not _is_host_port(pair)]
    if not source.get("volume"):
        errors.append(required(f"{path}.volume"))
    return errors


def _is_host_port(pair: str) -> bool:
    host, colon, _ = pair.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    return bool(colon) and (is_bracketed or ":" not in host)


def _validate_fc(source: Document, path: str) -> list[FieldError]:
    targets, identifiers, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    errors: list[FieldError] = []
    if not targets and not identifiers:
        detail = "must specify either targetWWNs or wwids, but not both"
        errors.append(required(f"{path}.targetWWNs", detail))
    if targets and identifiers:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", targets, detail))
    if not targets:
        return errors
    if lun is None:
        return [*errors, required(f"{path}.lun", "lun is required if targetWWNs is specified")]
    return errors + [invalid(f"{path}.lun", lun, text) for text in range_errors(lun, 0, 255)]


def _validate_flex(source: Document, path: str) -> list[FieldError]:
    errors = struct_rules("core", "FlexVolumeSource").validate(source, path)
    for key in source.get("options") or ():
        owner = f".{key.partition('/')[0].lower()}"
        if owner.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, detail))
    return errors


def _validate_azure_disk(source: Document, path: str) -> list[FieldError]:
    errors = struct_rules("core", "AzureDiskVolumeSource").validate(source, path)
    kind, address = source.get("kind"), source.get("diskURI", "")
    if kind == "Managed" and not address.startswith("/subscriptions/"):
        errors.append(not_supported(f"{path}.diskURI", address, [_MANAGED_DISK]))
    if kind is not None and kind != "Managed" and not address.startswith("https://"):
        errors.append(not_supported(f"{path}.diskURI", address, [_BLOB_DISK]))
    return errors


def _validate_storage_os(source: Document, path: str) -> list[FieldError]:
    return struct_rules("core", "StorageOSVolumeSource").validate(source, path) + _validate_secret(source, path)


NAMED_SOURCES: Mapping[str, Callable[[Document, str], list[FieldError]]] = {
    "gitRepo": _by_schema("GitRepoVolumeSource"),
    "gcePersistentDisk": _validate_disk("GCEPersistentDiskVolumeSource"),
    "awsElasticBlockStore": _validate_disk("AWSElasticBlockStoreVolumeSource"),
    "nfs": _validate_nfs,
    "iscsi": validate_iscsi,
    "glusterfs": _by_schema("GlusterfsVolumeSource"),
    "flocker": _validate_flocker,
    "persistentVolumeClaim": _by_schema("PersistentVolumeClaimVolumeSource"),
    "rbd": _by_schema("RBDVolumeSource"),
    "cinder": _validate_cinder,
    "cephfs": _by_schema("CephFSVolumeSource"),
    "quobyte": _validate_quobyte,
    "fc": _validate_fc,
    "flexVolume": _validate_flex,
    "azureFile": _by_schema("AzureFileVolumeSource"),
    "vsphereVolume": _by_schema("VsphereVirtualDiskVolumeSource"),
    "photonPersistentDisk": _by_schema("PhotonPersistentDiskVolumeSource"),
    "portworxVolume": _by_schema("PortworxVolumeSource"),
    "azureDisk": _validate_azure_disk,
    "storageos": _validate_storage_os,
    "scaleIO": _by_schema("ScaleIOVolumeSource"),
}
"""The sources with rules of their own that need nothing but the source."""


def validate_sources(spec: Document, volume_name: str, path: str, has_affinity: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    is_found = False
    for field, check in PERSISTENT_SOURCES.items():
        source = spec.get(field)
        if source is None:
            continue
        if is_found and field != "flexVolume":
            shown = "cephFS" if field == "cephfs" else field
            errors.append(forbidden(f"{path}.{shown}", "may not specify more than 1 volume type"))
            continue
        is_found = True
        errors += check(source, f"{path}.{'persistentDisk' if field == 'gcePersistentDisk' else field}")
        if field == "iscsi":
            errors += _validate_initiator(source, volume_name, f"{path}.iscsi")
        if field == "local" and not has_affinity:
            errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    if not is_found:
        errors.append(required(path, "must specify a volume type"))
    return errors


# --- sources ----------------------------------------------------------------------------------------------------


def _validate_persistent_glusterfs(source: Document, path: str) -> list[FieldError]:
    errors = struct_rules("core", "GlusterfsPersistentVolumeSource").validate(source, path)
    namespace = source.get("endpointsNamespace")
    here = f"{path}.endpointsNamespace"
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        errors.append(invalid(here, namespace, detail))
    elif namespace is not None:
        errors += [invalid(here, namespace, text) for text in dns_label_errors(namespace)]
    return errors


def _validate_iscsi(source: Document, path: str) -> list[FieldError]:
    """The rest of the errors, which come last, need the name of the volume: `_validate_initiator`."""
    return struct_rules("core", "ISCSIPersistentVolumeSource").validate(source, path)


def _validate_initiator(source: Document, volume_name: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    portal, iqn, initiator = source.get("targetPortal", ""), source.get("iqn", ""), source.get("initiatorName")
    if initiator is not None and len(f"{volume_name}:{portal}".encode()) > 64:
        errors.append(invalid(f"{path}.targetportal", portal, _TOO_LONG_PORTAL))
    if not iqn:
        errors.append(required(f"{path}.iqn"))
    elif not _is_initiator(iqn):
        errors.append(invalid(f"{path}.iqn", iqn, "must be valid format"))
    lun = source.get("lun", 0)
    if not 0 <= lun <= 255:
        errors.append(invalid(f"{path}.lun", lun, range_rule(0, 255)))
    secret = source.get("secretRef")
    if secret is None and (source.get("chapAuthDiscovery") or source.get("chapAuthSession")):
        errors.append(required(f"{path}.secretRef"))
    if secret is not None and not secret.get("name"):
        errors.append(required(f"{path}.secretRef.name"))
    if initiator is not None and not _is_initiator(initiator):
        errors.append(invalid(f"{path}.initiatorname", initiator, "must be valid format"))
    return errors


def _validate_persistent_cinder(source: Document, path: str) -> list[FieldError]:
    rules = struct_rules("core", "CinderPersistentVolumeSource")
    return rules.validate(source, path) + _validate_secret_filled(source, path)


def _validate_azure_file(source: Document, path: str) -> list[FieldError]:
    errors = struct_rules("core", "AzureFilePersistentVolumeSource").validate(source, path)
    if source.get("secretNamespace") == "":
        errors.append(required(f"{path}.secretNamespace"))
    return errors


def _validate_persistent_storage_os(source: Document, path: str) -> list[FieldError]:
    rules = struct_rules("core", "StorageOSPersistentVolumeSource")
    return rules.validate(source, path) + _validate_secret_filled(source, path)


def _validate_csi(source: Document, path: str) -> list[FieldError]:
    errors = validate_driver_name(source.get("driver", ""), f"{path}.driver")
    errors += struct_rules("core", "CSIPersistentVolumeSource").validate(source, path)
    references = (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    )
    for field in references:
        if field in source:
            errors += struct_rules("core", "SecretReference").validate(source[field], f"{path}.{field}")
    return errors


def _validate_secret_filled(source: Document, path: str) -> list[FieldError]:
    secret = source.get("secretRef")
    return validate_required(secret, ("name", "namespace"), f"{path}.secretRef") if secret is not None else []


def _is_initiator(name: str) -> bool:
    form = _INITIATOR_FORMS.get(name[:3])
    return form is not None and form(name) is not None


PERSISTENT_SOURCES: Mapping[str, Callable[[Document, str], list[FieldError]]] = {
    "hostPath": validate_host_path,
    "gcePersistentDisk": NAMED_SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": NAMED_SOURCES["awsElasticBlockStore"],
    "glusterfs": _validate_persistent_glusterfs,
    "flocker": NAMED_SOURCES["flocker"],
    "nfs": NAMED_SOURCES["nfs"],
    "rbd": NAMED_SOURCES["rbd"],
    "quobyte": NAMED_SOURCES["quobyte"],
    "cephfs": NAMED_SOURCES["cephfs"],
    "iscsi": _validate_iscsi,
    "cinder": _validate_persistent_cinder,
    "fc": NAMED_SOURCES["fc"],
    "flexVolume": NAMED_SOURCES["flexVolume"],
    "azureFile": _validate_azure_file,
    "vsphereVolume": NAMED_SOURCES["vsphereVolume"],
    "photonPersistentDisk": NAMED_SOURCES["photonPersistentDisk"],
    "portworxVolume": NAMED_SOURCES["portworxVolume"],
    "azureDisk": NAMED_SOURCES["azureDisk"],
    "scaleIO": NAMED_SOURCES["scaleIO"],
    "local": _by_schema("LocalVolumeSource"),
    "storageos": _validate_persistent_storage_os,
    "csi": _validate_csi,
}
"""Sources in the order of validation. Sources that pods have, too, are validated as for pods."""
