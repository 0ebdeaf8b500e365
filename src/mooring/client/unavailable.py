"""A client without an API server, for scheduling engines that only decide.

Every request fails with the reason. Decisions need no requests; a plugin that writes would make one.
"""

from __future__ import annotations

from typing import NoReturn

from mooring.api.kinds import Kind
from mooring.client.errors import NoAnswerError
from mooring.client.interface import EVERYTHING, Deletion, JsonObject, Listing, PatchForm, Selection, Watch


class UnavailableClient:
    """Implements `Client` by rejecting every request."""

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        _reject(f"get {kind.plural} {namespace}/{name}")

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        _reject(f"list {kind.plural}")

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        _reject(f"watch {kind.plural}")

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        _reject(f"create {kind.plural} in {namespace}")

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        _reject(f"update {kind.plural} {namespace}/{name}")

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        _reject(f"patch {kind.plural} {namespace}/{name}")

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        _reject(f"delete {kind.plural} {namespace}/{name}")

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        _reject(f"bind {namespace}/{name} to {node_name}")


def _reject(what: str) -> NoReturn:
    raise NoAnswerError(f"cannot {what}: there is no API server here")
