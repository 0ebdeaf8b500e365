"""Texts of table cells that several kinds share: ages, labels, selectors, containers, lists cut short.

    45s · 3m20s · 12m · 5h30m · 13h · 3d4h · 100d · 2y35d

1. The longer a duration, the fewer units are printed: two while the larger one is small, then one.
2. A time up to two seconds in the future prints as now, because clocks differ. A later one prints as `<invalid>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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


NONE = "<none>"
UNSET = "<unset>"
SHOWN_MAX = 3
"""How many of a list are shown before it is cut short."""


def labels_text(labels: Mapping[str, str] | None) -> str:
    """`app=web,tier=front`."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector_text(selector: Document | None) -> str:
    """A label selector in the form that `kubectl -l` takes."""
    return bare_selector_text(selector) or NONE


def bare_selector_text(selector: Document | None) -> str:
    """The same; empty for one that takes everything or nothing."""
    if not selector:
        return ""
    requirements = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    requirements += [(each["key"], _expression_text(each)) for each in selector.get("matchExpressions") or ()]
    return ",".join(text for _, text in sorted(requirements, key=lambda requirement: requirement[0]))


def _expression_text(expression: Document) -> str:
    key, operator = expression["key"], expression["operator"]
    match operator:
        case "Exists":
            return str(key)
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return f"{key} {operator.lower()} ({','.join(sorted(expression.get('values') or ()))})"


def containers_and_images(pod_spec: Document | None) -> tuple[str, str]:
    containers = (pod_spec or {}).get("containers") or ()
    return ",".join(each["name"] for each in containers), ",".join(each.get("image", "") for each in containers)


def template_spec(template: Document | None) -> Document | None:
    return (template or {}).get("spec")


def cut_short(shown: Sequence[str], count: int) -> str:
    """`a,b,c + 4 more...`, where `shown` are the first ones of `count`."""
    text = ",".join(shown)
    return f"{text} + {count - SHOWN_MAX} more..." if count > SHOWN_MAX else text


def access_modes_text(modes: Iterable[str] | None) -> str:
    """`RWO,ROX`, always in the same order."""
    present = frozenset(modes or ())
    return ",".join(short for mode, short in _ACCESS_MODES if mode in present)


_ACCESS_MODES = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)
