"""Fields of pods whose feature gates are off in v1.36.

Comes in   a spec or a status, and the one that it replaces
Goes out   the same without those fields, unless the old one already used them
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.document import Document
from mooring.apiserver.validation.containers_walk import every_container

_PROJECTIONS = ("clusterTrustBundle", "podCertificate")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def drop_disabled_template_fields(template: Document | None, old: Document | None) -> None:
    """Drop what is disabled from a template."""
    if template is not None:
        drop_disabled_spec_fields(template.get("spec") or {}, (old or {}).get("spec"))


def drop_disabled_spec_fields(spec: Document, old: Document | None) -> None:
    """Drop what is disabled from a spec."""
    known = old or {}
    for field in _PROJECTIONS:
        used = [source for source in _projections(spec) if source.get(field) is not None]
        if used and not any(source.get(field) is not None for source in _projections(known)):
            for source in used:
                del source[field]
    if spec.get("schedulingGroup") is not None and known.get("schedulingGroup") is None:
        del spec["schedulingGroup"]
    signalled = [each for each, _ in every_container(spec, "") if (each.get("lifecycle") or {}).get("stopSignal")]
    if signalled and not any((each.get("lifecycle") or {}).get("stopSignal") for each, _ in every_container(known, "")):
        for container in signalled:
            del container["lifecycle"]["stopSignal"]
            if not container["lifecycle"]:
                del container["lifecycle"]


def drop_disabled_status_fields(status: Document, old: Document | None) -> None:
    """Drop what is disabled from a status."""
    known = old or {}
    if status.get("nodeAllocatableResourceClaimStatuses") and not known.get("nodeAllocatableResourceClaimStatuses"):
        del status["nodeAllocatableResourceClaimStatuses"]
    digested = [mount for mount in _mount_statuses(status) if mount.get("volumeStatus") is not None]
    if digested and not any(mount.get("volumeStatus") is not None for mount in _mount_statuses(known)):
        for mount in digested:
            del mount["volumeStatus"]


def _projections(spec: Document) -> Iterator[Document]:
    for volume in spec.get("volumes") or ():
        if volume.get("projected"):
            yield from volume["projected"].get("sources") or ()


def _mount_statuses(status: Document) -> Iterator[Document]:
    for field in _STATUSES:
        for each in status.get(field) or ():
            yield from each.get("volumeMounts") or ()
