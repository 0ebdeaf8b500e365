"""Ages: spans of time in a few letters, as Kubernetes prints them.

   45s · 3m20s · 12m · 5h30m · 13h · 3d4h · 100d · 2y35d

1. The longer the span, the fewer its digits: two units while the larger one is small, then one.
2. A moment that lies up to two seconds ahead is now, because clocks differ; one further ahead is `<invalid>`.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.kit.clock import parse_rfc3339

UNKNOWN = "<unknown>"
_AHEAD_S_MAX = 2
_MINUTE_S, _HOUR_S = 60, 3600
_DAY_HOURS = 24
_YEAR_DAYS = 365
_YEAR_HOURS = _YEAR_DAYS * _DAY_HOURS


def age(obj: Document, now_s: float) -> str:
    """How long ago an object was made."""
    return since(obj["metadata"].get("creationTimestamp"), now_s)


def since(moment: str | None, now_s: float) -> str:
    """How long ago a moment was."""
    return human_duration(now_s - parse_rfc3339(moment)) if moment else UNKNOWN


def between(start: str, end: str) -> str:
    return human_duration(parse_rfc3339(end) - parse_rfc3339(start))


def human_duration(span_s: float) -> str:
    """A span as people read it."""
    seconds = int(span_s)
    if seconds <= -_AHEAD_S_MAX:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 2 * _MINUTE_S:
        return f"{seconds}s"
    minutes, hours = seconds // _MINUTE_S, seconds // _HOUR_S
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 2 * _DAY_HOURS:
        return f"{hours}h"
    days = hours // _DAY_HOURS
    if hours < 8 * _DAY_HOURS:
        return _pair(days, "d", hours % _DAY_HOURS, "h")
    if hours < 2 * _YEAR_HOURS:
        return f"{days}d"
    if hours < 8 * _YEAR_HOURS:
        return _pair(days // _YEAR_DAYS, "y", days % _YEAR_DAYS, "d")
    return f"{days // _YEAR_DAYS}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
