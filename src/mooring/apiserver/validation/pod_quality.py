"""The quality of service of a pod: how much of what it asks for is promised to it.

Comes in   a pod's spec
Goes out   `Guaranteed`, `Burstable` or `BestEffort`

 1. Only cpu and memory count, and only amounts above zero.
 2. What the pod asks for as a whole counts instead of its containers, if it says anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.quantity import quantity_nano

_COUNTED = ("cpu", "memory")


def quality_of_service(spec: Document) -> str:
    """The class of a pod."""
    whole = spec.get("resources")
    holders: Sequence[Document] = (
        [whole] if whole is not None else [each.get("resources") or {} for each in _containers(spec)]
    )
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    is_guaranteed = True
    for resources in holders:
        _add(requests, resources.get("requests") or {})
        found = _add(limits, resources.get("limits") or {})
        if found < len(_COUNTED) and (whole is None or resources.get("limits")):
            is_guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _containers(spec: Document) -> Sequence[Document]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _add(total: dict[str, int], amounts: Mapping[str, str]) -> int:
    """Add what counts, and tell how many resources that was."""
    found = 0
    for name in _COUNTED:
        amount_nano = quantity_nano(amounts[name]) if name in amounts else 0
        if amount_nano > 0:
            total[name] = total.get(name, 0) + amount_nano
            found += 1
    return found
