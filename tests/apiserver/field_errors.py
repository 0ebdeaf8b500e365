"""Field errors as texts."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.apiserver.validation.fields import Fault


def messages(faults: Iterable[Fault]) -> list[str]:
    """The message of each field error."""
    return [fault.message for fault in faults]
