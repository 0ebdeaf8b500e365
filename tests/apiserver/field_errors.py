"""Field errors as texts."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.apiserver.validation.fields import FieldError


def messages(errors: Iterable[FieldError]) -> list[str]:
    """The message of each field error."""
    return [error.message for error in errors]
