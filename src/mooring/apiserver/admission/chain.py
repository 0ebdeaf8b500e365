"""The chain: all admission plugins, in order.

Input: an attempt.
Output: the same to every plugin that handles it.

 1. Which plugins handle a kind, a subresource and an operation is asked once and remembered: an ordinary write meets
    only those that have something to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.kinds import Kind
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup
from mooring.apiserver.call import Operation


class Chain:
    """Asks the plugins."""

    def __init__(self, mutating: Sequence[Admission], validating: Sequence[Admission], lookup: Lookup) -> None:
        self._mutating = tuple(mutating)
        self._validating = tuple(validating)
        self._lookup = lookup
        self._handlers: dict[tuple[Kind, str, Operation], tuple[tuple[Admission, ...], tuple[Admission, ...]]] = {}

    async def admit(self, attempt: Attempt) -> None:
        for plugin in self._handling(attempt)[0]:
            await plugin.admit(attempt, self._lookup)

    async def check(self, attempt: Attempt) -> None:
        for plugin in self._handling(attempt)[1]:
            await plugin.check(attempt, self._lookup)

    async def check_deletion(self, attempt: Attempt) -> None:
        """All plugins at once: there is nothing to be changed about what goes."""
        await self.admit(attempt)
        await self.check(attempt)

    def _handling(self, attempt: Attempt) -> tuple[tuple[Admission, ...], tuple[Admission, ...]]:
        key = (attempt.call.kind, attempt.call.subresource, attempt.operation)
        found = self._handlers.get(key)
        if found is None:
            found = self._handlers[key] = (
                tuple(plugin for plugin in self._mutating if plugin.handles(*key)),
                tuple(plugin for plugin in self._validating if plugin.handles(*key)),
            )
        return found
