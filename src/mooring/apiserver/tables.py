"""Columns of a kind, the function that makes a row of cells of an object, and texts of cells that kinds share.

1. A row has a cell for each column, including those of lower priority. The client leaves out what it does not show.

Ages are written as kubectl does:

    45s · 3m20s · 12m · 5h30m · 13h · 3d4h · 100d · 2y35d

1. The longer a duration, the fewer units are printed: two while the larger one is small, then one.
2. A time up to two seconds in the future prints as now, because clocks differ. A later one prints as `<invalid>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.kit.clock import parse_rfc3339

Cell = object
"""A text, a number, a truth value or None."""
Cells = Callable[[Document, float], list[Cell]]
"""The cells of an object; the second argument is the time, from which ages are counted."""


@dataclass(frozen=True, slots=True, eq=False)
class KindTable:
    """How one kind is printed."""

    columns: Sequence[Document]
    cells: Cells
    conditions: Callable[[Document], list[Document] | None] | None = None
    """The conditions of a row, such as Completed for a finished pod."""

    @property
    def empty_rows(self) -> list[Document] | None:
        """The rows of an empty table. kube-apiserver returns null for kinds without columns of their own."""
        return None if self is DEFAULT_TABLE else []

    def row(self, obj: Document, now_s: float) -> Document:
        row: Document = {"cells": self.cells(obj, now_s)}
        if self.conditions is not None and (conditions := self.conditions(obj)):
            row["conditions"] = conditions
        return row


def column(name: str, about: str, *, type_name: str = "string", form: str = "", is_wide: bool = False) -> Document:
    """A column. `is_wide` columns are shown by `kubectl get -o wide`."""
    return {
        "name": name,
        "type": type_name,
        "format": form,
        "description": about,
        "priority": 1 if is_wide else 0,
    }


def integer(name: str, about: str) -> Document:
    return column(name, about, type_name="integer")


def boolean(name: str, about: str) -> Document:
    return column(name, about, type_name="boolean")


def wide(name: str, about: str) -> Document:
    return column(name, about, is_wide=True)


NAME = column("Name", "Its name, which nothing else of this kind has in the same place.", form="name")
AGE = column("Age", "How long ago it was made.")
CREATED_AT = column("Created At", "When it was made.", type_name="date")


def _made_at(obj: Document, now_s: float) -> list[Cell]:
    metadata = obj["metadata"]
    return [metadata["name"], metadata.get("creationTimestamp")]


DEFAULT_TABLE = KindTable((NAME, CREATED_AT), _made_at)
"""The table of kinds without columns of their own."""


def _name_and_age_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], age(obj, now_s)]


NAME_AND_AGE = KindTable((NAME, AGE), _name_and_age_cells)


# --- cells ----------------------------------------------------------------------------------------------------


UNKNOWN = "<unknown>"
_AHEAD_S_MAX = 2
_MINUTE_S, _HOUR_S = 60, 3600
_DAY_HOURS = 24
_YEAR_DAYS = 365
_YEAR_HOURS = _YEAR_DAYS * _DAY_HOURS


def age(obj: Document, now_s: float) -> str:
    """The age of an object."""
    return since(obj["metadata"].get("creationTimestamp"), now_s)


def since(moment: str | None, now_s: float) -> str:
    """The duration since a timestamp."""
    return human_duration(now_s - parse_rfc3339(moment)) if moment else UNKNOWN


def between(start: str, end: str) -> str:
    return human_duration(parse_rfc3339(end) - parse_rfc3339(start))


def human_duration(span_s: float) -> str:
    """A duration in the format of kubectl."""
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
"""Entries of a list in a cell. The others are counted."""


def labels_text(labels: Mapping[str, str] | None) -> str:
    """`app=web,tier=front`."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector_text(selector: Document | None) -> str:
    """A label selector in the form that `kubectl -l` takes."""
    return bare_selector_text(selector) or NONE


def bare_selector_text(selector: Document | None) -> str:
    """As `selector_text`; empty for a selector that selects everything or nothing."""
    if not selector:
        return ""
    requirements = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    requirements += [
        (match_expression["key"], _expression_text(match_expression))
        for match_expression in selector.get("matchExpressions") or ()
    ]
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
    return ",".join(container["name"] for container in containers), ",".join(
        container.get("image", "") for container in containers
    )


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
