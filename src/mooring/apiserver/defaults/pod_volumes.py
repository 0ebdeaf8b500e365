"""Defaults of a volume.

Comes in   a volume of a pod
Goes out   the same, filled in; one without a source is an empty directory
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.pod_containers import default_field_reference, pull_policy, round_amounts

FILE_MODE = 0o644
TOKEN_LIFE_S = 3600

_MODED = ("secret", "configMap", "downwardAPI", "projected")
_PLAIN: dict[str, dict[str, object]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""Sources whose fields have fixed defaults."""


def default_volume(volume: Document) -> None:
    """Fill in a volume."""
    if len(volume) == 1 or all(source is None for key, source in volume.items() if key != "name"):
        volume["emptyDir"] = {}
        return
    for kind, source in volume.items():
        if kind == "name" or source is None:
            continue
        if kind in _MODED:
            _default_files(kind, source)
        elif kind in _PLAIN:
            for field, value in _PLAIN[kind].items():
                source.setdefault(field, value)
        elif kind == "image":
            _default_image(source)
        elif kind == "ephemeral":
            _default_claim_template(source.get("volumeClaimTemplate"))


def _default_files(kind: str, source: Document) -> None:
    source.setdefault("defaultMode", FILE_MODE)
    if kind == "downwardAPI":
        _default_files_of_fields(source)
    for projection in source.get("sources") or ():
        _default_files_of_fields(projection.get("downwardAPI") or {})
        if projection.get("serviceAccountToken") is not None:
            projection["serviceAccountToken"].setdefault("expirationSeconds", TOKEN_LIFE_S)


def _default_files_of_fields(source: Document) -> None:
    for item in source.get("items") or ():
        default_field_reference(item.get("fieldRef"))


def _default_image(source: Document) -> None:
    if not source.get("pullPolicy"):
        source["pullPolicy"] = pull_policy(source.get("reference", ""))


def _default_claim_template(template: Document | None) -> None:
    if template is None:
        return
    spec = template["spec"]
    spec.setdefault("volumeMode", "Filesystem")
    for side in ("limits", "requests"):
        amounts = spec.get("resources", {}).get(side)
        if amounts:
            round_amounts(amounts)
