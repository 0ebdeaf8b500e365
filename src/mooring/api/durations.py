"""Parse and format Go durations, as in configurations, schedules and URLs: `15s`, `1m30s`, `-1.5h`.

1. A text is parsed in whole nanoseconds, so that `0.1s` and `100ms` are equal.
2. The three error texts are those of Go.
"""

import re

from mooring.api.field_errors import quoted

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # the micro sign
    "μs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "h": 3600 * 1_000_000_000,
}
_SECOND = _NANOSECONDS["s"]
_NANOSECONDS_MAX = 2**63 - 1

_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_DIGITS_MAX = 20
"""More digits than 64 bits have. Python parses no number of very many digits."""


def parse_duration(text: str) -> float:
    """Parse a duration into seconds. Raises `ValueError` with the text of Go."""
    return parse_nanoseconds(text) / _SECOND


def parse_nanoseconds(text: str) -> int:
    """Parse a duration into nanoseconds. Raises `ValueError` with the text of Go."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(f"time: invalid duration {quoted(text)}")
    nanoseconds, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        assert part is not None, "the pattern of a part also matches nothing"
        nanoseconds += _part_nanoseconds(text, part[1], part[2] or "", part[3])
        position = part.end()
    if nanoseconds > _NANOSECONDS_MAX + (sign < 0):
        raise ValueError(f"time: invalid duration {quoted(text)}")
    return sign * nanoseconds


def _part_nanoseconds(text: str, whole: str, fraction: str, unit: str) -> int:
    if not whole and not fraction:
        raise ValueError(f"time: invalid duration {quoted(text)}")
    if not unit:
        raise ValueError(f"time: missing unit in duration {quoted(text)}")
    if unit not in _NANOSECONDS:
        raise ValueError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
    scale, fraction = _NANOSECONDS[unit], fraction[:_DIGITS_MAX]
    amount = int(whole.lstrip("0")[:_DIGITS_MAX] or "0")
    return amount * scale + int(fraction or "0") * scale // int("1" + "0" * len(fraction))


def format_duration(seconds: float) -> str:
    """The text for a number of seconds, as Go prints it: `1h0m0s`, `1.5s`, `250ms`, `0s`."""
    nanoseconds = round(abs(seconds) * _SECOND)
    sign = "-" if seconds < 0 and nanoseconds else ""
    if nanoseconds == 0:
        return "0s"
    for unit in ("ns", "µs", "ms"):
        if nanoseconds < 1000 * _NANOSECONDS[unit]:
            return f"{sign}{_decimal(nanoseconds, _NANOSECONDS[unit])}{unit}"
    minutes, rest = divmod(nanoseconds, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, _SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(nanoseconds: int, unit: int) -> str:
    whole, rest = divmod(nanoseconds, unit)
    if rest == 0:
        return str(whole)
    digits = str(unit + rest)[1:].rstrip("0")
    return f"{whole}.{digits}"
