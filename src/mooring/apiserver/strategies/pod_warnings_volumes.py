"""What is unwise about the volumes of a pod: sources out of use, and files that hide each other.

Comes in   `volumes`
Goes out   warnings
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.kinds.persistent_volume_claim import claim_spec_warnings

_OUT_OF_USE = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_TOLD_OTHERWISE = {"storageos": "storageOS"}


class _File(NamedTuple):
    path: str
    source: str

    def __str__(self) -> str:
        return f"{quoted(self.path)} ({self.source})" if self.source else quoted(self.path)


def volume_warnings(volumes: Sequence[Document], path: str) -> list[str]:
    """Sources that are out of use, and claims of half a byte."""
    warnings: list[str] = []
    for index, volume in enumerate(volumes):
        for kind, advice in _OUT_OF_USE.items():
            if volume.get(kind) is None:
                continue
            here = f"{path}[{index}].{_TOLD_OTHERWISE.get(kind, kind)}"
            if kind == "ephemeral":
                template = volume[kind].get("volumeClaimTemplate") or {}
                warnings += claim_spec_warnings(template.get("spec") or {}, f"{here}.volumeClaimTemplate.spec")
            else:
                warnings.append(f"{here}: {advice}")
    return warnings


def overlap_warnings(volumes: Sequence[Document]) -> list[str]:
    """Files of one volume at the same path, or one below the other."""
    warnings: list[str] = []
    for volume in volumes:
        name = quoted(volume.get("name", ""))
        for kind, told in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
            source = volume.get(kind)
            if source is None:
                continue
            called = source.get("secretName" if kind == "secret" else "name", "")
            whole = f"{told} {quoted(called)}" if kind != "downwardAPI" else told
            files = [_File(item.get("path", ""), "") for item in source.get("items") or ()]
            warnings += [f"volume {name} ({whole}): overlapping paths: {text}" for text in _overlaps(files)]
        if volume.get("projected") is not None:
            warnings += _projected_warnings(volume["projected"], name)
    return warnings


def _projected_warnings(projected: Document, name: str) -> list[str]:
    warnings: list[str] = []
    known: list[_File] = []
    for source in projected.get("sources") or ():
        if not source:
            warnings.append(f"volume {name} (Projected) has no sources provided")
        warnings += [
            f"volume {name} (Projected): overlapping paths: {text}"
            for text in _overlaps(_projected_files(source), known)
        ]
    return warnings


def _projected_files(source: Document) -> list[_File]:
    for kind, told in (("configMap", "ConfigMap"), ("secret", "Secret")):
        items = (source.get(kind) or {}).get("items")
        if items is not None:
            return [_File(item.get("path", ""), f"{told} {quoted(source[kind].get('name', ''))}") for item in items]
    items = (source.get("downwardAPI") or {}).get("items")
    if items is not None:
        return [_File(item.get("path", ""), "DownwardAPI") for item in items]
    token = source.get("serviceAccountToken")
    return [_File(token.get("path", ""), "ServiceAccountToken")] if token is not None else []


def _overlaps(files: Sequence[_File], known: list[_File] | None = None) -> list[str]:
    """Each file that lies at or below or above one before it; `known` grows."""
    before = [] if known is None else known
    texts: list[str] = []
    for given in files:
        file = given._replace(path=given.path.rstrip("/"))
        texts += [f"{file} with {other}" for other in before if file.path and other.path and _overlap(file, other)]
        before.append(file)
    return texts


def _overlap(one: _File, other: _File) -> bool:
    return f"{one.path}/".startswith(f"{other.path}/") or f"{other.path}/".startswith(f"{one.path}/")
