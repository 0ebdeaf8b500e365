"""Strict errors: what becomes of fields that a kind does not have, or that come twice.

Comes in   the errors that `examine` found, and what the client asked for (`fieldValidation`)
Goes out   warnings, or one text for a refusal

    Ignore   nothing
    Warn     each error is a warning of its own; the default of the server
    Strict   the request is refused, with all errors in one text
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.apiserver.call import Call, FieldValidation

YAML_ERRORS = "yaml: unmarshal errors:"


def strict_text(errors: Sequence[str]) -> str:
    """All errors in one, as a refusal words them."""
    return f"strict decoding error: {', '.join(errors)}"


def apply_field_validation(errors: Sequence[str], call: Call) -> str | None:
    """Adds warnings to the call if it wants them; the text of the refusal if it wants that."""
    if not errors:
        return None
    match call.field_validation:
        case FieldValidation.STRICT:
            return strict_text(errors)
        case FieldValidation.WARN:
            for text in warnings(errors):
                call.warn(text)
    return None


def warnings(errors: Sequence[str]) -> list[str]:
    """Each error as a warning. The errors of YAML are several in one."""
    texts: list[str] = []
    for error in errors:
        if error.startswith(YAML_ERRORS):
            texts += [line.strip() for line in error.removeprefix(YAML_ERRORS).splitlines() if line.strip()]
        else:
            texts.append(error)
    return texts
