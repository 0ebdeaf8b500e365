"""A way to extenders, whatever it is made of. Apart from `http`, whose library takes a while to import."""

from __future__ import annotations

from typing import Protocol

from mooring.scheduler.extenders.extender import Extender


class ExtenderError(OSError):
    """An extender could not be asked. Asking again may help."""


class Transport(Protocol):
    """A way to an extender."""

    async def ask(self, extender: Extender, verb: str, body: bytes) -> bytes: ...

    async def close(self) -> None: ...
