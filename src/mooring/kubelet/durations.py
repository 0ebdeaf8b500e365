"""Durations: "500ms", "1m30s", as people write them and as Go prints them."""

from __future__ import annotations

import re

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


class DurationError(ValueError):
    """A text that is no duration."""


def parse_duration_s(text: str) -> float:
    """Seconds of "1m30s". Raises `DurationError`."""
    if text == "0":
        return 0.0
    if _WHOLE.fullmatch(text) is None:
        raise DurationError(f'{text!r} is not a duration; wanted one such as "500ms", "10s" or "1m30s"')
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


def format_whole_duration(duration_s: float) -> str:
    """As Go prints it: 10s, 1m20s, 5m0s, 1h0m0s. Fractions of a second are cut off."""
    seconds = int(duration_s)
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
