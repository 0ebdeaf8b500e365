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
from mooring.api.schema.types import struct_named
from mooring.apiserver.kinds.persistent_volume_claim import validate_persistent_volume_claim_spec
from mooring.apiserver.kinds.pod.environment import FILE_FIELDS, validate_field_reference, validate_resource_reference
from mooring.apiserver.kinds.pod.options import PodOptions
from mooring.apiserver.kinds.volume_sources import NAMED_SOURCES, validate_csi, validate_host_path
from mooring.apiserver.validation.fields import FieldError, duplicate, forbidden, invalid, required
from mooring.apiserver.validation.metadata import validate_annotations, validate_labels
from mooring.apiserver.validation.names import dns_subdomain_errors, validate_file_mode, validate_unreserved_path
from mooring.apiserver.validation.schema_rules import struct_rules

TOKEN_LIFE_S_MIN = 600
TOKEN_LIFE_S_MAX = 2**32

_VOLUME = struct_rules("core", "Volume")
_SECRET = struct_rules("core", "SecretVolumeSource")
_CONFIG_MAP = struct_rules("core", "ConfigMapVolumeSource")
_SECRET_PROJECTION = struct_rules("core", "SecretProjection")
_KEY_TO_PATH = struct_rules("core", "KeyToPath")
_DOWNWARD_FILE = struct_rules("core", "DownwardAPIVolumeFile")
_IMAGE = struct_rules("core", "ImageVolumeSource")

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
_SHOWN_NAMES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""The name of a second source in its error, where kube-apiserver misspells it."""
_LOOKED_AT_OTHERWISE = {"gcePersistentDisk": "persistentDisk"}


def validate_ephemeral_claim_template(template: Document, path: str) -> list[FieldError]:
    """Field errors of a template of claims."""
    errors = validate_template_metadata(template.get("metadata") or {}, f"{path}.metadata")
    return errors + validate_persistent_volume_claim_spec(template.get("spec") or {}, f"{path}.spec")


def validate_template_metadata(metadata: Document, path: str) -> list[FieldError]:
    """Field errors of the metadata of a template for an object."""
    errors = validate_annotations(metadata.get("annotations") or {}, f"{path}.annotations")
    errors += validate_labels(metadata.get("labels") or {}, f"{path}.labels")
    for field in struct_named("meta", "ObjectMeta").fields:
        if field not in ("annotations", "labels") and metadata.get(field):
            shown = "uID" if field == "uid" else field
            errors.append(forbidden(f"{path}.{shown}", "cannot be set"))
    return errors


def validate_secret_volume(source: Document, path: str) -> list[FieldError]:
    errors = _SECRET.validate(source, path, "secretName", "defaultMode")
    return errors + validate_keys(source.get("items") or (), f"{path}.items")


def validate_config_map_volume(source: Document, path: str) -> list[FieldError]:
    errors = _CONFIG_MAP.validate(source, path, "name", "defaultMode")
    return errors + validate_keys(source.get("items") or (), f"{path}.items")


def validate_downward_volume(source: Document, path: str) -> list[FieldError]:
    """Paths of its items lack the index, as in kube-apiserver."""
    errors = validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        errors += validate_downward_file(item, path)
    return errors


def validate_keys(items: Sequence[Document], path: str) -> list[FieldError]:
    """Field errors of the keys that become files."""
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        errors += _KEY_TO_PATH.validate(item, f"{path}[{index}]")
    return errors


def validate_downward_file(file: Document, path: str) -> list[FieldError]:
    """Field errors of a file that shows a field of the pod, or a resource of a container."""
    errors = _DOWNWARD_FILE.validate(file, path, "path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        errors += validate_field_reference(field, FILE_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", detail))
    elif resource is not None:
        errors += validate_resource_reference(resource, f"{path}.resourceFieldRef", True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + _DOWNWARD_FILE.validate(file, path, "mode")


def validate_projected_volume(source: Document, path: str, options: PodOptions) -> list[FieldError]:
    errors = validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if projection.get(kind) is not None:
                errors += _validate_object(projection[kind], taken, f"{here}.{kind}", path)
        if projection.get("downwardAPI") is not None:
            errors += _validate_downward(projection["downwardAPI"], taken, f"{here}.downwardAPI", path)
        if projection.get("serviceAccountToken") is not None:
            token = projection["serviceAccountToken"]
            errors += _validate_volume_token(token, f"{here}.serviceAccountToken", path, options)
        if sum(projection.get(kind) is not None for kind in _PROJECTED_KINDS) > 1:
            errors.append(forbidden(here, "may not specify more than 1 volume type per source"))
    return errors


def _validate_object(projection: Document, taken: set[str], here: str, path: str) -> list[FieldError]:
    name = projection.get("name", "")
    errors = _SECRET_PROJECTION.validate(projection, here, "name")
    for index, item in enumerate(projection.get("items") or ()):
        errors += _KEY_TO_PATH.validate(item, f"{here}.items[{index}]")
        errors += _validate_clashes(item.get("path", ""), name, taken, path)
    return errors


def _validate_downward(projection: Document, taken: set[str], here: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for file in projection.get("items") or ():
        errors += validate_downward_file(file, here)
        errors += _validate_clashes(file.get("path", ""), file.get("path", ""), taken, path)
    return errors


def _validate_clashes(file: str, shown: str, taken: set[str], path: str) -> list[FieldError]:
    if file and file in taken:
        return [invalid(path, shown, "conflicting duplicate paths")]
    taken.add(file)
    return []


def _validate_volume_token(token: Document, here: str, path: str, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    life_s, file = token.get("expirationSeconds", 0), token.get("path", "")
    if life_s < TOKEN_LIFE_S_MIN:
        detail = "may not specify a duration less than 10 minutes"
        errors.append(invalid(f"{here}.expirationSeconds", life_s, detail))
    if life_s > TOKEN_LIFE_S_MAX:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{here}.expirationSeconds", life_s, detail))
    if not file:
        errors.append(required(f"{path}.path"))
    elif not options.tolerates_token_paths:
        errors += validate_unreserved_path(file, f"{path}.path")
    return errors


def validated_volumes(
    volumes: Sequence[Document], metadata: Document | None, path: str, options: PodOptions
) -> tuple[dict[str, Document], list[FieldError]]:
    """The valid volumes by name, and the field errors of the others."""
    usable: dict[str, Document] = {}
    if not volumes:
        return usable, []
    errors: list[FieldError] = []
    pod_name = (metadata or {}).get("name", "")
    made = {
        f"{pod_name}-{volume.get('name', '')}" for volume in volumes if pod_name and volume.get("ephemeral") is not None
    }
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name", "")
        own = _validate_volume_source(volume, name, pod_name, here, options)
        own += _VOLUME.validate(volume, here, "name")
        if name in usable:
            own.append(duplicate(f"{here}.name", name))
        if not own:
            usable[name] = volume
        errors += own
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{here}.persistentVolumeClaim.claimName", claim, detail))
    return usable, errors


def _validate_volume_source(
    volume: Document, name: str, pod_name: str, path: str, options: PodOptions
) -> list[FieldError]:
    errors: list[FieldError] = []
    is_given = False
    if volume.get("emptyDir") is not None:
        is_given = True
        limit = volume["emptyDir"].get("sizeLimit")
        if limit is not None and quantity_nano(limit) < 0:
            errors.append(forbidden(f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity"))
    # Almost every volume is a name and one source: then there is no order to keep.
    for kind in _ORDER if len(volume) > 2 else [field for field in volume if field in _VOLUME_KINDS]:
        source = volume.get(kind)
        if source is None:
            continue
        if is_given:
            shown = _SHOWN_NAMES.get(kind, kind)
            errors.append(forbidden(f"{path}.{shown}", "may not specify more than 1 volume type"))
        else:
            is_given = True
            here = f"{path}.{_LOOKED_AT_OTHERWISE.get(kind, kind)}"
            errors += _validate_one_source(kind, source, here, options)
            if kind == "ephemeral" and pod_name and name:
                errors += _validate_made_claim(name, f"{pod_name}-{name}", path)
        if kind == "iscsi":
            errors += _validate_iscsi_name(name, source, path)
    if not is_given:
        errors.append(required(path, "must specify a volume type"))
    return errors


def _validate_one_source(kind: str, source: Document, path: str, options: PodOptions) -> list[FieldError]:
    match kind:
        case "downwardAPI":
            return validate_downward_volume(source, path)
        case "projected":
            return validate_projected_volume(source, path, options)
        case "ephemeral":
            return _validate_ephemeral(source, path)
        case "image":
            return _IMAGE.validate(source, path, *(("reference", "pullPolicy") if options.is_pod else ("pullPolicy",)))
        case _:
            return _CHECKS[kind](source, path)


def _validate_ephemeral(source: Document, path: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return validate_ephemeral_claim_template(template, f"{path}.volumeClaimTemplate")


def _validate_made_claim(name: str, claim: str, path: str) -> list[FieldError]:
    return [invalid(f"{path}.name", name, f"PVC name {quoted(claim)}: {text}") for text in dns_subdomain_errors(claim)]


def _validate_iscsi_name(name: str, source: Document, path: str) -> list[FieldError]:
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is None or len(f"{name}:{portal}".encode()) <= ISCSI_NAME_LENGTH_MAX:
        return []
    detail = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
        "if iscsi.initiatorName is specified."
    )
    return [invalid(f"{path}.name", name, detail)]


_CHECKS: dict[str, Callable[[Document, str], list[FieldError]]] = {
    **NAMED_SOURCES,
    "hostPath": validate_host_path,
    "csi": validate_csi,
    "secret": validate_secret_volume,
    "configMap": validate_config_map_volume,
}
