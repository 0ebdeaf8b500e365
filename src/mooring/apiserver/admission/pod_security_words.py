"""What the checks of pod security share: a violation, the containers of a pod, and how they are listed in a text.

Input: pods.
Output: `Violation`s and their parts.

 1. All containers count: those that start the pod, its own, and those that were added for debugging, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from mooring.api.document import Document


class Violation(NamedTuple):
    """Why a pod is not allowed on a level."""

    reason: str
    detail: str


Check: TypeAlias = Callable[[Document, Document], Violation | None]
"""From the metadata and the spec of a pod to what is wrong with it."""


def containers_of(spec: Document) -> list[Document]:
    return [
        *(spec.get("initContainers") or []),
        *(spec.get("containers") or []),
        *(spec.get("ephemeralContainers") or []),
    ]


def security_of(holder: Document) -> Document:
    """The security context of a container, or of a pod's spec."""
    return holder.get("securityContext") or {}


def listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def plural(one: str, several: str, count: int) -> str:
    return one if count == 1 else several


def containers_named(names: Sequence[str]) -> str:
    return f"{plural('container', 'containers', len(names))} {listed(names)}"


def setters(is_pod: bool, names: Sequence[str]) -> str:
    """Who sets something that he must not: the pod, containers, or both."""
    return " and ".join([*(["pod"] if is_pod else []), *([containers_named(names)] if names else [])])


def is_in_user_namespace(spec: Document) -> bool:
    """Whether root in the pod is not root on the node: some rules are relaxed then."""
    return spec.get("hostUsers") is False


def is_windows(spec: Document) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"
