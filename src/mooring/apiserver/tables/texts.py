"""Texts of cells that several kinds share: labels, selectors, containers, lists cut short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mooring.api.document import Document

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
