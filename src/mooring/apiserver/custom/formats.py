"""Validate strings against the `format` of their schema.

Input: the name of a format and a string. Output: whether the string has the format.

 1. Dashes in names are ignored: `date-time` is `datetime`.
 2. A format that is unknown, or unknown for the type of its schema, is ignored in validation. The API server warns when
    such a CRD is created.
"""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Mapping
from email.utils import parseaddr

from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.kubernetes import url
from mooring.api.cel.patterns import compile_pattern
from mooring.api.durations import parse_nanoseconds
from mooring.apiserver.validation.addresses import parse_ip, parse_range

HOSTNAME_LENGTH_MAX = 255
LABEL_LENGTH_MAX = 63
LONG_NAME_LENGTH_MAX = 253

_INTEGER_FORMATS = frozenset({"int32", "int64"})
_NUMBER_FORMATS = frozenset({"float", "double"})


def known_format(name: str, type_name: str) -> str:
    """The format, if it is known for the type; otherwise an empty string."""
    match type_name:
        case "" | "string":
            return name if name.replace("-", "") in _CHECKS else ""
        case "integer":
            return name if name in _INTEGER_FORMATS else ""
        case "number":
            return name if name in _NUMBER_FORMATS else ""
        case _:
            return ""


def check_of(name: str) -> Callable[[str], bool] | None:
    """The check of a format; None if it is not a format of strings."""
    return _CHECKS.get(name.replace("-", ""))


# --- times ------------------------------------------------------------------------------------------------------

_is_date_shape = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII).fullmatch
_is_time_shape = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))").fullmatch
_find_amounts = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII).findall
_UNITS = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)


def is_date(text: str) -> bool:
    shape = _is_date_shape(text)
    if shape is None:
        return False
    year, month, day = (int(part) for part in shape.groups())
    return 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]


def is_date_time(text: str) -> bool:
    parts = text.lower().split("t")
    if len(parts) < 2 or not is_date(parts[0]):
        return False
    shape = _is_time_shape(parts[1])
    return shape is not None and shape[1] <= "23" and shape[2] <= "59" and shape[3] <= "59"


def is_duration(text: str) -> bool:
    """A duration of Go, or a text such as `3 days 4 hours`."""
    try:
        parse_nanoseconds(text)
    except ValueError:
        return any(_is_unit(unit.lower()) for _, unit in _find_amounts(text))
    return True


def _is_unit(unit: str) -> bool:
    return any(unit in variants or unit.startswith(variants[-1]) for variants in _UNITS)


# --- addresses --------------------------------------------------------------------------------------------------

# kube-openapi's pattern, over text in which "a" stands for any letter, "0" for a digit and "+" for any symbol.
_HOSTNAME = r"^([a0+]((-?[a0+]{0,62})?)|([a0+](([a0+-]{0,61}[a0+])?)(\.)){1,}(a){2,63})$"
_is_mac_of = re.compile(
    r"[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}(?:(?:\1[0-9a-f]{2}){2}|(?:\1[0-9a-f]{2}){14})?"
    r"|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}|(?:[0-9a-f]{4}\.){3}[0-9a-f]{4}|(?:[0-9a-f]{4}\.){9}[0-9a-f]{4}",
    re.IGNORECASE,
).fullmatch


def _is_uri(text: str) -> bool:
    try:
        host = url(text).host
    except EvaluationFailure:
        return False
    return ("[" in host) == ("]" in host)


def _is_email(text: str) -> bool:
    _, address = parseaddr(text)
    name, at, domain = address.rpartition("@")
    return bool(name and at and domain) and " " not in address and not domain.startswith(".")


def _is_hostname(text: str) -> bool:
    if len(text.encode()) > HOSTNAME_LENGTH_MAX:
        return False
    if not compile_pattern(_HOSTNAME).is_found_in("".join(map(_hostname_character, text))):
        return False
    return all(len(label.encode()) <= LABEL_LENGTH_MAX for label in text.split("."))


def _hostname_character(character: str) -> str:
    if character in ".-":
        return character
    if character in "0123456789":
        return "0"
    return {"L": "a", "S": "+"}.get(unicodedata.category(character)[0], "!")


def _is_ipv4(text: str) -> bool:
    return "." in text and parse_ip(text) is not None


def _is_ipv6(text: str) -> bool:
    return ":" in text and parse_ip(text) is not None


def _is_range(text: str) -> bool:
    return parse_range(text) is not None


# --- numbers in strings -------------------------------------------------------------------------------------

_is_isbn_10_shape = re.compile("[0-9]{9}X|[0-9]{10}").fullmatch
_is_isbn_13_shape = re.compile("[0-9]{13}").fullmatch
_is_card_shape = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
).fullmatch
_without_separators = re.compile(r"[\s-]+").sub
_without_letters = re.compile("[^0-9]+").sub


def _is_isbn_10(text: str) -> bool:
    digits = _without_separators("", text)
    if not _is_isbn_10_shape(digits):
        return False
    last = 10 if digits[9] == "X" else int(digits[9])
    return (sum((index + 1) * int(digit) for index, digit in enumerate(digits[:9])) + 10 * last) % 11 == 0


def _is_isbn_13(text: str) -> bool:
    digits = _without_separators("", text)
    if not _is_isbn_13_shape(digits):
        return False
    total = sum((1, 3)[index % 2] * int(digit) for index, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


def _is_card(text: str) -> bool:
    digits = _without_letters("", text)
    if not _is_card_shape(digits):
        return False
    doubled = (int(digit) * (2 if index % 2 else 1) for index, digit in enumerate(reversed(digits)))
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _matching(pattern: str, flags: re.RegexFlag = re.ASCII, length_max: int | None = None) -> Callable[[str], bool]:
    matches = re.compile(pattern, flags | re.ASCII).fullmatch
    return lambda text: (length_max is None or len(text) <= length_max) and matches(text) is not None


_HEX = "[0-9a-f]"
_SHADE = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_SHORT_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_is_social_security_number = _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}")

_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _matching("[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_range,
    "mac": lambda text: _is_mac_of(text) is not None,
    "uuid": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid3": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid4": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE),
    "uuid5": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}", re.IGNORECASE),
    "isbn": lambda text: _is_isbn_10(text) or _is_isbn_13(text),
    "isbn10": _is_isbn_10,
    "isbn13": _is_isbn_13,
    "creditcard": _is_card,
    "ssn": lambda text: len(text.encode()) == 11 and _is_social_security_number(text),
    "hexcolor": _matching("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matching(rf"rgb\({_SHADE},{_SHADE},{_SHADE}\)"),
    "byte": _matching("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda text: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": _matching(_SHORT_NAME, length_max=LABEL_LENGTH_MAX),
    "k8slongname": _matching(rf"{_SHORT_NAME}(\.{_SHORT_NAME})*", length_max=LONG_NAME_LENGTH_MAX),
}
