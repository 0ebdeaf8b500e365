"""Conditions of a namespace that goes: what still stands in its way.

Comes in   what was found and what went wrong when it was emptied (`Emptying`)
Goes out   its conditions, all five of them, well or not

 1. A condition's time changes with its status only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from mooring.api.document import Document
from mooring.api.kinds import Kind

_WELL = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


@dataclass(slots=True)
class Emptying:
    """How far a namespace has been emptied."""

    errors: list[str] = field(default_factory=list)
    remaining: dict[Kind, int] = field(default_factory=dict)
    finalizers: Counter[str] = field(default_factory=Counter)
    estimate_s: int = 0
    """How long the rest will take, as far as can be told."""


def conditions_after(conditions: list[Document], emptying: Emptying, now: str, *, with_totals: bool) -> list[Document]:
    """The conditions of a namespace; the very list that was given if nothing changes. `with_totals`: what remains."""
    troubles = _troubles(emptying, with_totals)
    result = [dict(condition) for condition in conditions]
    for type, reason, message in _WELL:
        status = "False"
        if type in troubles:
            status, (reason, message) = "True", troubles[type]
        new = {"type": type, "status": status, "reason": reason, "message": message}
        old = next((condition for condition in result if condition.get("type") == type), None)
        if old is None:
            result.append({**new, "lastTransitionTime": now})
        else:
            if old.get("status") != status:
                old["lastTransitionTime"] = now
            old.update(new)
    return result if result != conditions else conditions


def _troubles(emptying: Emptying, with_totals: bool) -> dict[str, tuple[str, str]]:
    troubles = {}
    if emptying.errors:
        count, errors = len(emptying.errors), ", ".join(sorted(emptying.errors))
        message = f"Failed to delete all resource types, {count} remaining: {errors}"
        troubles["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    if with_totals and emptying.remaining:
        found = sorted(
            f"{kind.plural}.{kind.group} has {count} resource instances" for kind, count in emptying.remaining.items()
        )
        troubles["NamespaceContentRemaining"] = (
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(found)}",
        )
    if with_totals and emptying.finalizers:
        held = sorted(f"{finalizer} in {count} resource instances" for finalizer, count in emptying.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(held)}"
        troubles["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return troubles
