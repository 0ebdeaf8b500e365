"""Validation of the volumes of a pod.

1. A volume has exactly one source. The first one in the table is validated, every other one is an error.
2. A volume cannot refer to the claim of an ephemeral volume.
3. A claim template has labels and annotations and no other metadata.
4. Two files at the same path are an error of the whole projected volume.
5. Trust bundles and pod certificates have no rules: their feature gates are off in v1.36, and the fields are dropped
   before validation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.quantity import quantity_nano
from mooring.api.schema.tables import struct_named
from mooring.apiserver.kinds.persistent_volume_claim import persistent_volume_claim_spec_faults
from mooring.apiserver.kinds.pod.containers import pull_policy_faults
from mooring.apiserver.kinds.pod.environment import FILE_FIELDS, field_reference_faults, resource_reference_faults
from mooring.apiserver.kinds.pod.options import PodOptions
from mooring.apiserver.kinds.volume_sources import NAMED_SOURCES, csi_faults, host_path_faults
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, required
from mooring.apiserver.validation.metadata import annotations_faults, labels_faults
from mooring.apiserver.validation.names import (
    dns_label_faults,
    dns_subdomain_faults,
    file_mode_faults,
    unreserved_faults,
)

TOKEN_LIFE_S_MIN = 600
TOKEN_LIFE_S_MAX = 2**32

_PROJECTED_KINDS = ("secret", "configMap", "downwardAPI", "serviceAccountToken")

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
_VOLUME_KINDS = frozenset(_ORDER)
_TOLD_OTHERWISE = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""How a second source is called in its fault, where that is not its name: kube-apiserver misspells two."""
_LOOKED_AT_OTHERWISE = {"gcePersistentDisk": "persistentDisk"}


def ephemeral_claim_template_faults(template: Document, path: str) -> list[Fault]:
    """What is wrong with a template of claims."""
    faults = template_metadata_faults(template.get("metadata") or {}, f"{path}.metadata")
    return faults + persistent_volume_claim_spec_faults(template.get("spec") or {}, f"{path}.spec")


def template_metadata_faults(metadata: Document, path: str) -> list[Fault]:
    """What is wrong with the metadata of a template that becomes an object of its own."""
    faults = annotations_faults(metadata.get("annotations") or {}, f"{path}.annotations")
    faults += labels_faults(metadata.get("labels") or {}, f"{path}.labels")
    for field in struct_named("meta", "ObjectMeta").fields:
        if field not in ("annotations", "labels") and metadata.get(field):
            told = "uID" if field == "uid" else field
            faults.append(forbidden(f"{path}.{told}", "cannot be set"))
    return faults


def secret_volume_faults(source: Document, path: str) -> list[Fault]:
    faults = [] if source.get("secretName") else [required(f"{path}.secretName")]
    return faults + _items_and_mode_faults(source, path)


def config_map_volume_faults(source: Document, path: str) -> list[Fault]:
    faults = [] if source.get("name") else [required(f"{path}.name")]
    return faults + _items_and_mode_faults(source, path)


def downward_volume_faults(source: Document, path: str) -> list[Fault]:
    """Its items are told without their index, as kube-apiserver does."""
    faults = file_mode_faults(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        faults += downward_file_faults(item, path)
    return faults


def keys_faults(items: Sequence[Document], path: str) -> list[Fault]:
    """What is wrong with the keys that become files."""
    faults: list[Fault] = []
    for index, item in enumerate(items):
        faults += key_faults(item, f"{path}[{index}]")
    return faults


def key_faults(item: Document, path: str) -> list[Fault]:
    faults = [required(f"{path}.{field}") for field in ("key", "path") if not item.get(field)]
    faults += unreserved_faults(item.get("path", ""), f"{path}.path")
    return faults + file_mode_faults(item.get("mode"), f"{path}.mode")


def downward_file_faults(file: Document, path: str) -> list[Fault]:
    """What is wrong with a file that shows a field of the pod, or a resource of a container."""
    faults = [] if file.get("path") else [required(f"{path}.path")]
    faults += unreserved_faults(file.get("path", ""), f"{path}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        faults += field_reference_faults(field, FILE_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            faults.append(invalid(path, "resource", detail))
    elif resource is not None:
        faults += resource_reference_faults(resource, f"{path}.resourceFieldRef", True)
    else:
        faults.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return faults + file_mode_faults(file.get("mode"), f"{path}.mode")


def _items_and_mode_faults(source: Document, path: str) -> list[Fault]:
    faults = file_mode_faults(source.get("defaultMode"), f"{path}.defaultMode")
    return faults + keys_faults(source.get("items") or (), f"{path}.items")


def projected_volume_faults(source: Document, path: str, options: PodOptions) -> list[Fault]:
    faults = file_mode_faults(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if projection.get(kind) is not None:
                faults += _object_faults(projection[kind], taken, f"{here}.{kind}", path)
        if projection.get("downwardAPI") is not None:
            faults += _downward_faults(projection["downwardAPI"], taken, f"{here}.downwardAPI", path)
        if projection.get("serviceAccountToken") is not None:
            token = projection["serviceAccountToken"]
            faults += _volume_token_faults(token, f"{here}.serviceAccountToken", path, options)
        if sum(projection.get(kind) is not None for kind in _PROJECTED_KINDS) > 1:
            faults.append(forbidden(here, "may not specify more than 1 volume type per source"))
    return faults


def _object_faults(projection: Document, taken: set[str], here: str, path: str) -> list[Fault]:
    name = projection.get("name", "")
    faults = [] if name else [required(f"{here}.name")]
    for index, item in enumerate(projection.get("items") or ()):
        faults += key_faults(item, f"{here}.items[{index}]")
        faults += _clash_faults(item.get("path", ""), name, taken, path)
    return faults


def _downward_faults(projection: Document, taken: set[str], here: str, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for file in projection.get("items") or ():
        faults += downward_file_faults(file, here)
        faults += _clash_faults(file.get("path", ""), file.get("path", ""), taken, path)
    return faults


def _clash_faults(file: str, told: str, taken: set[str], path: str) -> list[Fault]:
    if file and file in taken:
        return [invalid(path, told, "conflicting duplicate paths")]
    taken.add(file)
    return []


def _volume_token_faults(token: Document, here: str, path: str, options: PodOptions) -> list[Fault]:
    faults: list[Fault] = []
    life_s, file = token.get("expirationSeconds", 0), token.get("path", "")
    if life_s < TOKEN_LIFE_S_MIN:
        detail = "may not specify a duration less than 10 minutes"
        faults.append(invalid(f"{here}.expirationSeconds", life_s, detail))
    if life_s > TOKEN_LIFE_S_MAX:
        detail = "may not specify a duration larger than 2^32 seconds"
        faults.append(invalid(f"{here}.expirationSeconds", life_s, detail))
    if not file:
        faults.append(required(f"{path}.path"))
    elif not options.tolerates_token_paths:
        faults += unreserved_faults(file, f"{path}.path")
    return faults


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
        own = _volume_source_faults(volume, name, pod_name, here, options)
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


def _volume_source_faults(volume: Document, name: str, pod_name: str, path: str, options: PodOptions) -> list[Fault]:
    faults: list[Fault] = []
    is_given = False
    if volume.get("emptyDir") is not None:
        is_given = True
        limit = volume["emptyDir"].get("sizeLimit")
        if limit is not None and quantity_nano(limit) < 0:
            faults.append(forbidden(f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity"))
    # Almost every volume is a name and one source: then there is no order to keep.
    for kind in _ORDER if len(volume) > 2 else [each for each in volume if each in _VOLUME_KINDS]:
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
    return ephemeral_claim_template_faults(template, f"{path}.volumeClaimTemplate")


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
