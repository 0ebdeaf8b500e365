"""What is wrong with the source of a volume: one function for each that asks for more than that fields are filled.

Comes in   the spec of a volume
Goes out   faults, in the order in which kube-apiserver looks at the sources

 1. The first source that is found counts; every further one is forbidden. Flex volumes alone are never counted as
    too many, only judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, required
from mooring.apiserver.validation.names import backstep_faults, dns_label_faults, dns_subdomain_faults, range_rule
from mooring.apiserver.validation.volumes_sources import NAMED_SOURCES, driver_name_faults, host_path_faults

_TOO_LONG_PORTAL = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
_INITIATOR_FORMS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$").search,
    "eui": re.compile("eui.[A-Za-z0-9]{16}").fullmatch,
    "naa": re.compile("naa.[A-Za-z0-9]{32}").fullmatch,
}


csi_driver_name_faults = driver_name_faults


def sources_faults(spec: Document, volume_name: str, path: str, has_affinity: bool) -> list[Fault]:
    faults: list[Fault] = []
    is_found = False
    for field, check in SOURCES.items():
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


def _glusterfs_faults(source: Document, path: str) -> list[Fault]:
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


def _cinder_faults(source: Document, path: str) -> list[Fault]:
    return _filled("volumeID")(source, path) + _secret_filled_faults(source, path)


def _azure_file_faults(source: Document, path: str) -> list[Fault]:
    faults = _filled("secretName", "shareName")(source, path)
    if source.get("secretNamespace") == "":
        faults.append(required(f"{path}.secretNamespace"))
    return faults


def _local_faults(source: Document, path: str) -> list[Fault]:
    written = source.get("path", "")
    return backstep_faults(written, f"{path}.path") if written else [required(f"{path}.path")]


def _storage_os_faults(source: Document, path: str) -> list[Fault]:
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


SOURCES: Mapping[str, Callable[[Document, str], list[Fault]]] = {
    "hostPath": host_path_faults,
    "gcePersistentDisk": NAMED_SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": NAMED_SOURCES["awsElasticBlockStore"],
    "glusterfs": _glusterfs_faults,
    "flocker": NAMED_SOURCES["flocker"],
    "nfs": NAMED_SOURCES["nfs"],
    "rbd": NAMED_SOURCES["rbd"],
    "quobyte": NAMED_SOURCES["quobyte"],
    "cephfs": NAMED_SOURCES["cephfs"],
    "iscsi": _iscsi_faults,
    "cinder": _cinder_faults,
    "fc": NAMED_SOURCES["fc"],
    "flexVolume": NAMED_SOURCES["flexVolume"],
    "azureFile": _azure_file_faults,
    "vsphereVolume": NAMED_SOURCES["vsphereVolume"],
    "photonPersistentDisk": NAMED_SOURCES["photonPersistentDisk"],
    "portworxVolume": NAMED_SOURCES["portworxVolume"],
    "azureDisk": NAMED_SOURCES["azureDisk"],
    "scaleIO": NAMED_SOURCES["scaleIO"],
    "local": _local_faults,
    "storageos": _storage_os_faults,
    "csi": _csi_faults,
}
"""In the order in which they are looked at. What pods can also use directly is judged as for pods."""
