"""Strict faults: what becomes of fields that a kind does not have, or that come twice.

Comes in   the faults that `examine` found, and what the client asked for (`fieldValidation`)
Goes out   warnings, or one text for a refusal

    Ignore   nothing
    Warn     each fault is a warning of its own; the default of the server
    Strict   the request is refused, with all faults in one text
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.apiserver.call import Call, FieldValidation

YAML_FAULTS = "yaml: unmarshal errors:"


def strict_text(faults: Sequence[str]) -> str:
    """All faults in one, as a refusal words them."""
    return f"strict decoding error: {', '.join(faults)}"


def warn_or_refuse(faults: Sequence[str], call: Call) -> str | None:
    """Adds warnings to the call if it wants them; the text of the refusal if it wants that."""
    if not faults:
        return None
    match call.field_validation:
        case FieldValidation.STRICT:
            return strict_text(faults)
        case FieldValidation.WARN:
            for text in warnings(faults):
                call.warn(text)
    return None


def warnings(faults: Sequence[str]) -> list[str]:
    """Each fault as a warning. The faults of YAML are several in one."""
    texts: list[str] = []
    for fault in faults:
        if fault.startswith(YAML_FAULTS):
            texts += [line.strip() for line in fault.removeprefix(YAML_FAULTS).splitlines() if line.strip()]
        else:
            texts.append(fault)
    return texts
