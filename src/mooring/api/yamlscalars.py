"""The value of a YAML scalar, as kubectl resolves it: `yes` is true, a date is a string.

Input: the text of a scalar, its tag if there is one, and whether it is plain (neither quoted nor tagged). Output: a
string, a bool, an int, a float or None; and the string of such a value as a key of a mapping.

 1. Words are matched as a whole (`Yes`, but not `yEs`). Numbers are tried in the order int, float, string.
 2. Underscores in numbers are dropped. A leading 0 means octal unless a digit forbids it (`08` is the float 8).
 3. A number beyond 64 bits is a float, and one beyond every float is a string.
"""

import base64
import binascii
import math
import re
from decimal import Decimal

Scalar = str | bool | int | float | None

_TAG_PREFIX = "tag:yaml.org,2002:"

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}

_MAY_BE_NUMBER = frozenset("0123456789+-.")

_INTEGER = re.compile(
    r"[-+]?(?:0[xX](?P<hexadecimal>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = {"hexadecimal": 16, "binary": 2, "octal": 8, "decimal": 10}

_INTEGER_CHARACTERS_MAX = 80
"""More digits than 64 bits need in any base; Python limits the digits of integers that it parses."""

_INT64_MIN = -(2**63)
_UINT64_MAX = 2**64 - 1

_JSON_EXPONENT_FROM = 1e21
"""From here on JSON writers use an exponent, and the number is read back as a float."""


def resolve_scalar(text: str, tag: str | None, *, is_plain: bool) -> Scalar:
    """The value of a scalar; `ValueError` where the text contradicts its tag, or JSON has no such value."""
    if is_plain:
        return _json_number(_resolve_plain(text))
    if tag is None or not tag.startswith(_TAG_PREFIX):
        return text
    return _json_number(_resolve_tagged(text, tag.removeprefix(_TAG_PREFIX)))


def as_key(value: object) -> str:
    """The text that a value is when it stands as a key."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            raise ValueError("unsupported map key: expected text, found null")


def _resolve_plain(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _MAY_BE_NUMBER:
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    integer = _INTEGER.fullmatch(digits) if len(digits) <= _INTEGER_CHARACTERS_MAX else None
    if integer is not None:
        base = integer.lastgroup
        assert base is not None, f"{text!r} matched no kind of integer"
        number = int(integer[base], _BASES[base])
        number = -number if digits[0] == "-" else number
        # A sign is only read for numbers of 63 bits, so "+" and the largest numbers do not go together.
        if _INT64_MIN <= number <= (_UINT64_MAX if digits[0] != "+" else -_INT64_MIN - 1):
            return number
    if _FLOAT.fullmatch(digits):
        fraction = float(digits)
        if math.isfinite(fraction):
            return fraction
    return text


def _resolve_tagged(text: str, kind: str) -> Scalar:
    if kind == "binary":
        try:
            return base64.b64decode(text, validate=False).decode("utf-8", errors="replace")
        except binascii.Error as error:
            raise ValueError("!!binary value contains invalid base64 data") from error
    if kind not in ("bool", "int", "float", "null"):
        return text  # !!str, !!timestamp, and unknown tags
    value = _resolve_plain(text)
    fits = {
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, int | float) and not isinstance(value, bool),
        "null": value is None,
    }
    if not fits[kind]:
        raise ValueError(f"cannot decode `{text}` as a !!{kind}")
    return value


def _json_number(value: Scalar) -> Scalar:
    """The value after a trip through JSON, which has no NaN, and no difference between 16.0 and 16."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ValueError(f"expected a value that JSON knows, found {value}")
    if value.is_integer() and abs(value) < _JSON_EXPONENT_FROM:
        return int(Decimal(repr(value)))  # the digits that a JSON writer would print
    return value
