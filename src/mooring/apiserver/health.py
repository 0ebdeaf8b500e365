"""Health: named checks of whether the server lives, and whether it can be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Check = Callable[[], bool]


@dataclass(slots=True)
class Health:
    """The checks; readiness has all of liveness' and its own."""

    live: dict[str, Check] = field(default_factory=lambda: {"ping": lambda: True})
    ready: dict[str, Check] = field(default_factory=dict)

    def checks(self, path: str) -> dict[str, Check]:
        return {**self.live, **self.ready} if path == "readyz" else dict(self.live)
