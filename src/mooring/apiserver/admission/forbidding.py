"""How a plugin says no: 403, with the name under which the object is known so far.

Input: an attempt and the reason.
Output: the `ForbiddenError` to raise.

 1. An object whose name is still to be generated is called by its prefix, one without either is `Unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.registry.errors import forbidden
from mooring.client.errors import Cause, ForbiddenError

_NAMELESS = "Unknown"


def refused(attempt: Attempt, why: str, causes: Sequence[Cause] = ()) -> ForbiddenError:
    """The error of a rejected attempt."""
    error = forbidden(attempt.call.kind, name_of(attempt), why)
    error.causes = tuple(causes)
    return error


def name_of(attempt: Attempt) -> str:
    """What the object of an attempt is called."""
    if attempt.call.name:
        return attempt.call.name
    metadata = (attempt.obj or {}).get("metadata") or {}
    return metadata.get("name") or metadata.get("generateName") or _NAMELESS
