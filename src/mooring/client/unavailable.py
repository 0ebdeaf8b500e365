"""A client where there is no API server: for engines that only decide.

Every request fails, and says why. A decision needs none; only a plugin that writes would ask.
"""

from __future__ import annotations

from typing import NoReturn

from mooring.api.kinds import Kind
from mooring.client.errors import NoAnswerError
from mooring.client.interface import EVERYTHING, Deletion, JsonObject, Listing, PatchForm, Selection, Watch


class UnavailableClient:
    """Implements `Client` by refusing every request."""

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        _refuse(f"get {kind.plural} {namespace}/{name}")

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        _refuse(f"list {kind.plural}")

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True) -> Watch:
        _refuse(f"watch {kind.plural}")

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        _refuse(f"create {kind.plural} in {namespace}")

    async def update(self, kind: Kind, namespace: str, name: str, body: JsonObject, *, subresource: str = "") -> bytes:
        _refuse(f"update {kind.plural} {namespace}/{name}")

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: object, *, form: PatchForm, subresource: str = ""
    ) -> bytes:
        _refuse(f"patch {kind.plural} {namespace}/{name}")

    async def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion | None = None) -> None:
        _refuse(f"delete {kind.plural} {namespace}/{name}")

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        _refuse(f"bind {namespace}/{name} to {node_name}")


def _refuse(what: str) -> NoReturn:
    raise NoAnswerError(f"cannot {what}: there is no API server here")
