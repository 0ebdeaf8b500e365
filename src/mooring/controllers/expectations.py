"""Requests of a controller that its informers do not show yet.

Inputs: requests and their answers; events from handlers. Outputs: whether the informers show all requests, so that
counting is correct.

1. While expectations are not met, no pod is created or deleted: the cache is older than the requests.
2. Deletions are expected by key, because one deletion causes several events.
3. A pod that was created and deleted while a watch was interrupted causes no event. So creations are also met when
   the informer includes the resourceVersion of the last one. That causes no event either: the controller syncs
   again after `RESYNC_S`. (kube-controller-manager waits for five minutes, then for any event.)
4. Expectations older than `EXPECTED_S_MAX` are dropped: a lost event must not block a controller forever.
5. `WriteExpectations` compare resourceVersions. After a write without an answer the object is read before the next
   sync: what the API returns is newer than the write, whether or not it was executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic

from mooring.api.decode import decode_as
from mooring.api.kinds import Kind
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.informer import AnyObject, Informer
from mooring.client.interface import Client
from mooring.kit.clock import Clock

EXPECTED_S_MAX = 300.0
RESYNC_S = 5.0


@dataclass(slots=True)
class _Expected:
    creations: int
    unanswered: int
    deletions: dict[str, None]
    since_s: float
    newest: str = ""
    """The resourceVersion of the newest creation that was answered."""


class Expectations:
    """The expectations of a controller, by key of the owner."""

    def __init__(self, clock: Clock, has_seen: Callable[[str], bool]) -> None:
        """`has_seen` says whether the informer of pods includes a resourceVersion."""
        self._clock = clock
        self._has_seen = has_seen
        self._by_key: dict[str, _Expected] = {}

    def are_met(self, key: str) -> bool:
        """Whether the informer shows all requests, or had enough time to."""
        expected = self._by_key.get(key)
        if expected is None or (not expected.deletions and self._are_created(expected)):
            return True
        return self._clock.now_s() - expected.since_s > EXPECTED_S_MAX

    def expect(self, key: str, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Expect a number of creations, and the deletions of these keys. Replaces earlier expectations."""
        self._by_key[key] = _Expected(creations, creations, dict.fromkeys(deletions), self._clock.now_s())

    def creation_answered(self, key: str, revision: str) -> None:
        """A pod was created with this resourceVersion."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.unanswered -= 1
            if (len(revision), revision) > (len(expected.newest), expected.newest):
                expected.newest = revision

    def creation_failed(self, key: str, count: int = 1) -> None:
        """Creations failed, or were not attempted."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.unanswered -= count
            expected.creations -= count

    def creation_seen(self, key: str) -> None:
        """The informer shows a new pod."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.creations -= 1

    def deletion_seen(self, key: str, deleted_key: str) -> None:
        """The informer shows the deletion of a pod, or the deletion failed."""
        expected = self._by_key.get(key)
        if expected is not None:
            expected.deletions.pop(deleted_key, None)

    def forget(self, key: str) -> None:
        self._by_key.pop(key, None)

    def _are_created(self, expected: _Expected) -> bool:
        if expected.creations <= 0:
            return True
        # Only numeric versions can be compared.
        return expected.unanswered <= 0 and expected.newest.isdecimal() and self._has_seen(expected.newest)


class WriteExpectations(Generic[AnyObject]):
    """Expectations about writes to dependents, by key of their owner."""

    def __init__(self, client: Client, kind: Kind, view: type[AnyObject], informer: Informer[AnyObject]) -> None:
        self._client = client
        self._kind = kind
        self._view = view
        self._informer = informer
        self._revisions: dict[str, str] = {}
        self._unanswered: dict[str, dict[tuple[str, str], None]] = {}

    def answered(self, key: str, raw: bytes) -> AnyObject:
        """Record the answer to a write. Returns the dependent as written."""
        written = decode_as(self._view, raw)
        self._revisions[key] = written.metadata.resource_version
        return written

    def failed(self, key: str, namespace: str, name: str, error: ClientError) -> None:
        """Record the failure of a write, which may have been executed."""
        if error.is_outcome_unknown:
            self._unanswered.setdefault(key, {})[namespace, name] = None

    async def are_met(self, key: str) -> bool:
        """Whether the informer shows all writes. Raises `ClientError` if a dependent cannot be read."""
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
