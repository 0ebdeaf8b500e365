"""What storage classes, CSI drivers and attached volumes are if nobody says otherwise.

Comes in   canonical documents
Goes out   the same, filled in place
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.persistent_volume import default_volume_source
from mooring.apiserver.defaults.pod_containers import round_amounts


def default_storage_class(obj: Document) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def default_csi_driver(obj: Document) -> None:
    spec = obj["spec"]
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
    spec.setdefault("requiresRepublish", False)
    spec.setdefault("seLinuxMount", False)


def default_volume_attachment(obj: Document) -> None:
    inline = obj["spec"]["source"].get("inlineVolumeSpec")
    if inline is not None:
        default_volume_source(inline)
        if "capacity" in inline:
            round_amounts(inline["capacity"])
