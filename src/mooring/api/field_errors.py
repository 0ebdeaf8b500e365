"""The texts of field errors, equal to those of Kubernetes.

Input: the path of a field, its value, and the reason. Output: one line for each error, or one text for several.

 1. Events and conditions contain these texts, and tools compare them with those of Kubernetes.
 2. Other errors quote values and their types as Go prints them: `quoted`, `go_json`, `go_text`, `go_type`, `json_type`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

NO_PATH = "<nil>"
"""The path of a value that is not in a field."""

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPES["\v"] = "\\v"
_MAY_NEED_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f]|[^\x00-\x7f]')


def invalid_value(path: str, value: str | Sequence[str], detail: str) -> str:
    """The value breaks a rule."""
    return f"{path or NO_PATH}: Invalid value: {quoted(value) if isinstance(value, str) else listed(value)}: {detail}"


def unsupported_value(path: str, value: str, supported: Iterable[str]) -> str:
    """The value is not one of the supported ones."""
    allowed = ", ".join(quoted(choice) for choice in supported)
    return f"{path or NO_PATH}: Unsupported value: {go_json(value)}: supported values: {allowed}"


def aggregated(errors: Iterable[str]) -> str:
    """All errors in one text, without duplicates."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def quoted(text: str) -> str:
    """The text in double quotes, as of Go's %q."""
    return f'"{_MAY_NEED_ESCAPE.sub(_escaped, text)}"'


def listed(values: Sequence[str]) -> str:
    """A list as JSON. An empty list is `null`, because Go decodes an absent list as nil."""
    return go_json(list(values)) if values else "null"


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_json(value: object, *, is_sorted: bool = False) -> str:
    """JSON as Go writes it: `<`, `>` and `&` escaped; keys in order if it is no struct."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=is_sorted)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def go_text(value: object) -> str:
    """A value as Go's `%v` prints it; messages of kube-apiserver quote objects so."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
        case list():
            return "[" + " ".join(go_text(item) for item in value) + "]"
        case _:
            return str(value)


def go_type(value: object) -> str:
    """The type that Go's decoder of JSON gives a value."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int():
            return "int64"
        case float():
            return "float64"
        case list():
            return "[]interface {}"
        case dict():
            return "map[string]interface {}"
        case _:
            return "<nil>"


def json_type(value: object) -> str:
    """The JSON type of a value, as Go's errors name it."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"
