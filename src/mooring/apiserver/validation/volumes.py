"""What is wrong with the volumes of a pod.

Comes in   `volumes`, and the metadata of the pod (None for a template)
Goes out   the volumes without faults, by name, because only those can be mounted; faults

 1. A volume has exactly one source. The first of the table that is given is looked at; every other one is a fault.
 2. A claim that will be made for an ephemeral volume is not one that another volume can refer to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.quantity import quantity_nano
from mooring.apiserver.kinds.volume_sources import NAMED_SOURCES, csi_faults, host_path_faults
from mooring.apiserver.validation.containers_common import pull_policy_faults
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, required
from mooring.apiserver.validation.names import dns_label_faults, dns_subdomain_faults
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.volumes_claims import claim_template_faults
from mooring.apiserver.validation.volumes_files import (
    config_map_volume_faults,
    downward_volume_faults,
    secret_volume_faults,
)
from mooring.apiserver.validation.volumes_projected import projected_volume_faults

ISCSI_NAME_LENGTH_MAX = 64

_ORDER = (
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
_KINDS = frozenset(_ORDER)
_TOLD_OTHERWISE = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""How a second source is called in its fault, where that is not its name: kube-apiserver misspells two."""
_LOOKED_AT_OTHERWISE = {"gcePersistentDisk": "persistentDisk"}


def volumes_faults(
    volumes: Sequence[Document], metadata: Document | None, path: str, options: PodOptions
) -> tuple[dict[str, Document], list[Fault]]:
    """The volumes that can be mounted, and what is wrong with the others."""
    usable: dict[str, Document] = {}
    if not volumes:
        return usable, []
    faults: list[Fault] = []
    pod_name = (metadata or {}).get("name", "")
    made = {f"{pod_name}-{each.get('name', '')}" for each in volumes if pod_name and each.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name", "")
        own = _source_faults(volume, name, pod_name, here, options)
        own += (
            [invalid(f"{here}.name", name, text) for text in dns_label_faults(name)]
            if name
            else [required(f"{here}.name")]
        )
        if name in usable:
            own.append(duplicate(f"{here}.name", name))
        if not own:
            usable[name] = volume
        faults += own
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            faults.append(invalid(f"{here}.persistentVolumeClaim.claimName", claim, detail))
    return usable, faults


# --- parts ------------------------------------------------------------------------------------------------------


def _source_faults(volume: Document, name: str, pod_name: str, path: str, options: PodOptions) -> list[Fault]:
    faults: list[Fault] = []
    is_given = False
    if volume.get("emptyDir") is not None:
        is_given = True
        limit = volume["emptyDir"].get("sizeLimit")
        if limit is not None and quantity_nano(limit) < 0:
            faults.append(forbidden(f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity"))
    # Almost every volume is a name and one source: then there is no order to keep.
    for kind in _ORDER if len(volume) > 2 else [each for each in volume if each in _KINDS]:
        source = volume.get(kind)
        if source is None:
            continue
        if is_given:
            told = _TOLD_OTHERWISE.get(kind, kind)
            faults.append(forbidden(f"{path}.{told}", "may not specify more than 1 volume type"))
        else:
            is_given = True
            here = f"{path}.{_LOOKED_AT_OTHERWISE.get(kind, kind)}"
            faults += _one_source_faults(kind, source, here, options)
            if kind == "ephemeral" and pod_name and name:
                faults += _made_claim_faults(name, f"{pod_name}-{name}", path)
        if kind == "iscsi":
            faults += _iscsi_name_faults(name, source, path)
    if not is_given:
        faults.append(required(path, "must specify a volume type"))
    return faults


def _one_source_faults(kind: str, source: Document, path: str, options: PodOptions) -> list[Fault]:
    match kind:
        case "downwardAPI":
            return downward_volume_faults(source, path)
        case "projected":
            return projected_volume_faults(source, path, options)
        case "ephemeral":
            return _ephemeral_faults(source, path)
        case "image":
            faults = [required(f"{path}.reference")] if options.is_pod and not source.get("reference") else []
            return faults + pull_policy_faults(source.get("pullPolicy", ""), f"{path}.pullPolicy")
        case _:
            return _CHECKS[kind](source, path)


def _ephemeral_faults(source: Document, path: str) -> list[Fault]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return claim_template_faults(template, f"{path}.volumeClaimTemplate")


def _made_claim_faults(name: str, claim: str, path: str) -> list[Fault]:
    return [invalid(f"{path}.name", name, f"PVC name {quoted(claim)}: {text}") for text in dns_subdomain_faults(claim)]


def _iscsi_name_faults(name: str, source: Document, path: str) -> list[Fault]:
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is None or len(f"{name}:{portal}".encode()) <= ISCSI_NAME_LENGTH_MAX:
        return []
    detail = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
        "if iscsi.initiatorName is specified."
    )
    return [invalid(f"{path}.name", name, detail)]


_CHECKS: dict[str, Callable[[Document, str], list[Fault]]] = {
    **NAMED_SOURCES,
    "hostPath": host_path_faults,
    "csi": csi_faults,
    "secret": secret_volume_faults,
    "configMap": config_map_volume_faults,
}
