"""The interface between the scheduler and its extenders, and the error of a failed request. `http` implements it."""

from __future__ import annotations

from typing import Protocol

from mooring.scheduler.extenders.extender import Extender


class ExtenderError(OSError):
    """A request to an extender failed. A later one may succeed."""


class Transport(Protocol):
    """Sends requests to extenders."""

    async def ask(self, extender: Extender, verb: str, body: bytes) -> bytes: ...

    async def close(self) -> None: ...
