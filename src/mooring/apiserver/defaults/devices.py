"""What requests for devices and tolerations are if nobody says otherwise.

Comes in   canonical claims and templates of claims
Goes out   the same, filled in place

 1. The time at which a taint was added needs a clock: the strategy of slices fills it in.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document


def default_resource_claim(obj: Document) -> None:
    _default_claim_spec(obj["spec"])
    allocation = (obj.get("status") or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        _default_tolerations(result.get("tolerations") or ())


def default_resource_claim_template(obj: Document) -> None:
    _default_claim_spec(obj["spec"]["spec"])


def _default_claim_spec(spec: Document) -> None:
    for request in spec["devices"].get("requests") or ():
        if "exactly" in request:
            _default_wish(request["exactly"])
        for alternative in request.get("firstAvailable") or ():
            _default_wish(alternative)


def _default_wish(wish: Document) -> None:
    if wish.setdefault("allocationMode", "ExactCount") == "ExactCount":
        wish.setdefault("count", 1)
    _default_tolerations(wish.get("tolerations") or ())


def _default_tolerations(tolerations: Sequence[Document]) -> None:
    for toleration in tolerations:
        toleration.setdefault("operator", "Equal")
