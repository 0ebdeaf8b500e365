"""Own writes: whether an informer shows what its controller wrote last to the parts of an object.

Comes in   answers to writes, or that there was none; an informer of the parts
Goes out   "you see everything that you wrote", or "you do not yet"

 1. A write whose answer was lost was carried out or not. The part is asked for before the next look: what it says is
    newer than the write, wherever that got to.
 2. What can be told is told by revisions: the informer is as new as the last write, or not.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Generic

from mooring.api.decode import decode_as
from mooring.api.kinds import Kind
from mooring.client.cache.informer import Informer
from mooring.client.cache.lister import AnyObject
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Client


class OwnWrites(Generic[AnyObject]):
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

    async def are_seen(self, key: str) -> bool:
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
