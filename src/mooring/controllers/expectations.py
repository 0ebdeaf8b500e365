"""Expectations: what a controller asked of the API and has not seen in its informers yet.

Comes in   "I am about to create three", and what came of each request; "one was created", from handlers
Goes out   whether the informers show everything that was asked for, so that counting makes sense again

 1. As long as something is expected, nobody is created or deleted: the copy is older than our own requests.
 2. Deletions are expected by key, because one pod is told as going several times.
 3. A pod that came and went while a watch was away is never told. So creations count as seen, too, when the informer is
    as new as the last of them. Nobody is woken by that: who still expects something looks again after `RESYNC_S`.
    (The original waits for five minutes, and then for any event at all.)
 4. An expectation that is older than `EXPECTED_S_MAX` is given up: a lost event must not stop a controller for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Generic

from mooring.api.decode import decode_as
from mooring.api.kinds import Kind
from mooring.client.cache.informer import Informer
from mooring.client.cache.lister import AnyObject
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Client
from mooring.kit.clock import Clock

EXPECTED_S_MAX = 300.0
RESYNC_S = 5.0


class _Expected:
    __slots__ = ("creations", "deletions", "newest", "since_s", "unanswered")

    def __init__(self, creations: int, deletions: dict[str, None], since_s: float) -> None:
        self.creations = creations
        self.unanswered = creations
        self.newest = ""
        self.deletions = deletions
        self.since_s = since_s


class Expectations:
    """By the key of the object that wants them."""

    def __init__(self, clock: Clock, has_seen: Callable[[str], bool]) -> None:
        """`has_seen` says whether the informer of the pods is as new as a resourceVersion."""
        self._clock = clock
        self._has_seen = has_seen
        self._by_key: dict[str, _Expected] = {}

    def are_met(self, key: str) -> bool:
        """Whether the informers show what was asked for, or have had long enough to."""
        expected = self._by_key.get(key)
        if expected is None or (not expected.deletions and self._are_created(expected)):
            return True
        return self._clock.now_s() - expected.since_s > EXPECTED_S_MAX

    def expect_creations(self, key: str, count: int) -> None:
        """In place of what was expected before."""
        self._by_key[key] = _Expected(count, {}, self._clock.now_s())

    def expect_deletions(self, key: str, deleted_keys: Iterable[str]) -> None:
        """In place of what was expected before."""
        self._by_key[key] = _Expected(0, dict.fromkeys(deleted_keys), self._clock.now_s())

    def expect(self, key: str, creations: int, deleted_keys: Iterable[str]) -> None:
        """Both at once."""
        self._by_key[key] = _Expected(creations, dict.fromkeys(deleted_keys), self._clock.now_s())

    def creation_answered(self, key: str, revision: str) -> None:
        """A pod was created; this is its resourceVersion."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.unanswered -= 1
            if (len(revision), revision) > (len(expected.newest), expected.newest):
                expected.newest = revision

    def creation_failed(self, key: str, count: int = 1) -> None:
        """A pod will not come, or was not even asked for."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.unanswered -= count
            expected.creations -= count

    def creation_seen(self, key: str) -> None:
        """A pod came."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.creations -= 1

    def deletion_seen(self, key: str, deleted_key: str) -> None:
        """A pod is going or gone, or will not go: its deletion failed."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.deletions.pop(deleted_key, None)

    def forget(self, key: str) -> None:
        self._by_key.pop(key, None)

    def _are_created(self, expected: _Expected) -> bool:
        if expected.creations <= 0:
            return True
        # Versions that are no numbers cannot be compared; then only being told counts.
        return expected.unanswered <= 0 and expected.newest.isdecimal() and self._has_seen(expected.newest)


class WriteExpectations(Generic[AnyObject]):
    """By the key of the object whose parts are written."""

    def __init__(self, client: Client, kind: Kind, view: type[AnyObject], informer: Informer[AnyObject]) -> None:
        self._client = client
        self._kind = kind
        self._view = view
        self._informer = informer
        self._revisions: dict[str, str] = {}
        self._unanswered: dict[str, dict[tuple[str, str], None]] = {}

    def answered(self, key: str, raw: bytes) -> AnyObject:
        """A part as the API has it now, after a write."""
        written = decode_as(self._view, raw)
        self._revisions[key] = written.metadata.resource_version
        return written

    def failed(self, key: str, namespace: str, name: str, error: ClientError) -> None:
        """A write of a part came to an error; perhaps it was carried out all the same."""
        if error.is_outcome_unknown:
            self._unanswered.setdefault(key, {})[namespace, name] = None

    async def are_written_seen(self, key: str) -> bool:
        """Raises `ClientError` where a part had to be asked for and did not answer."""
        unanswered = self._unanswered.get(key, {})
        for namespace, name in list(unanswered):
            with suppress(NotFoundError):
                self.answered(key, await self._client.get(self._kind, namespace, name))
            del unanswered[namespace, name]
        if not self._informer.has_seen(self._revisions.get(key, "")):
            return False
        self.forget(key)
        return True

    def forget(self, key: str) -> None:
        self._revisions.pop(key, None)
        self._unanswered.pop(key, None)
