"""Persistent volumes: a place for data that outlives pods."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.persistent_volume import default_persistent_volume
from mooring.apiserver.strategies.node_label_warnings import node_selector_term_warnings
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.validation.fields import Fault, required
from mooring.apiserver.validation.persistent_volume import (
    MOUNT_OPTIONS_ANNOTATION,
    has_bad_label_values,
    mount_options_faults,
    volume_faults,
    volume_spec_faults,
    volume_update_faults,
)

STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"

_DEPRECATED_ANNOTATIONS = {
    STORAGE_CLASS_ANNOTATION: 'deprecated since v1.8; use "storageClassName" attribute instead',
    MOUNT_OPTIONS_ANNOTATION: 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_DEPRECATED_SOURCES = {
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}


class PersistentVolumeStrategy(Strategy):
    """Writing a volume."""

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": PersistentVolumeStatusStrategy(self.kind, self)}

    def default(self, obj: Document) -> None:
        default_persistent_volume(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": call.now}

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return volume_faults(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        tolerates = has_bad_label_values(old)
        name = obj["metadata"].get("name", "")
        faults = self.meta_faults(obj)
        faults += volume_spec_faults(obj["spec"], name, "spec", tolerates_label_values=tolerates)
        # The volume is judged twice, as one of those that can be and as one that another can become.
        return [*faults, *mount_options_faults(obj), *faults, *volume_update_faults(obj, old)]

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _warnings(obj)


class PersistentVolumeStatusStrategy(StatusStrategy):
    """Writing the phase, and when it last changed."""

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        status, old_status = obj["status"], old["status"]
        since, old_since = status.get("lastPhaseTransitionTime"), old_status.get("lastPhaseTransitionTime")
        if status.get("phase") == old_status.get("phase"):
            if since is None:
                keep(status, old_status, "lastPhaseTransitionTime")
        elif since is None or since == old_since:
            status["lastPhaseTransitionTime"] = call.now

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return [] if obj["metadata"].get("resourceVersion") else [required("resourceVersion")]


def _warnings(volume: Document) -> list[str]:
    spec, annotations = volume["spec"], volume["metadata"].get("annotations") or {}
    warnings = [
        f"metadata.annotations[{key}]: {text}" for key, text in _DEPRECATED_ANNOTATIONS.items() if key in annotations
    ]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        warnings.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        warnings += node_selector_term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    return warnings + [f"spec.{shown}: {text}" for field, (shown, text) in _DEPRECATED_SOURCES.items() if field in spec]
