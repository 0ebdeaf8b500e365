"""Defaults of claims: pending, and a file system is wanted."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.pod_containers import round_amounts


def default_claim(claim: Document) -> None:
    status = claim["status"]
    status.setdefault("phase", "Pending")
    default_claim_spec(claim["spec"])
    for field in ("capacity", "allocatedResources"):
        if field in status:
            round_amounts(status[field])


def default_claim_spec(spec: Document) -> None:
    """Also for the templates of claims in other kinds."""
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec.get("resources") or {}
    for field in ("limits", "requests"):
        if field in resources:
            round_amounts(resources[field])
