"""How Kubernetes words the faults of a field, to the letter.

Comes in   a field's path, the value found there, and what is wrong with it
Goes out   one line of text for each fault, and one text for several

 1. These texts end up in events and conditions that people and tools compare with those of the original.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

NO_PATH = "<nil>"
"""What Kubernetes prints where a value has no field of its own."""

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPES["\v"] = "\\v"


def invalid_value(path: str, value: str | Sequence[str], detail: str) -> str:
    """A value that breaks a rule."""
    return f"{path or NO_PATH}: Invalid value: {quoted(value) if isinstance(value, str) else listed(value)}: {detail}"


def unsupported_value(path: str, value: str, supported: Iterable[str]) -> str:
    """A value that is none of those allowed."""
    allowed = ", ".join(quoted(choice) for choice in supported)
    return f"{path or NO_PATH}: Unsupported value: {_json(value)}: supported values: {allowed}"


def aggregated(faults: Iterable[str]) -> str:
    """All faults in one text, each told once."""
    distinct = list(dict.fromkeys(faults))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def quoted(text: str) -> str:
    """A text in double quotes, with everything unprintable escaped."""
    return f'"{"".join(_escaped(character) for character in text)}"'


def listed(values: Sequence[str]) -> str:
    """A list as JSON. An empty one is `null`: in an object that came from an API server it was absent."""
    return _json(list(values)) if values else "null"


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json(value: str | list[str]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
