"""Finalizers of custom objects may be odd; whoever adds an odd one is warned."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.validation.names import qualified_name_errors

_STANDARD = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_ADVICE = "to avoid accidental conflicts with other finalizer writers"


def finalizer_warnings(metadata: Document, old: Document | None) -> list[str]:
    """A warning for each finalizer that is new and odd."""
    known = frozenset((old or {}).get("finalizers") or ())
    added = sorted(frozenset(metadata.get("finalizers") or ()) - known)
    return [f"metadata.finalizers: {quoted(name)}: {text}" for name in added for text in _oddities(name)]


def _oddities(name: str) -> list[str]:
    found = list(qualified_name_errors(name))
    if "/" not in name and name not in _STANDARD:
        path = " including a path (/)" if "." in name else ""
        found.append(f"prefer a domain-qualified finalizer name{path} {_ADVICE}")
    return found
