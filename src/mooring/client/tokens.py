"""Token requests of service accounts: an optional interface of clients with an API server.

It is not part of the client interface, because a store signs no tokens, and only kubelets request them.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from mooring.client.errors import BadRequestError
from mooring.client.interface import Client, JsonObject


@runtime_checkable
class TokenRequests(Protocol):
    """A client that supports token requests."""

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes: ...


async def request_token(client: Client, namespace: str, name: str, request: JsonObject) -> bytes:
    """Request a token for a service account. Raises `ClientError`."""
    if not isinstance(client, TokenRequests):
        raise BadRequestError(f"tokens for {namespace}/{name} are given by API servers, not by {type(client).__name__}")
    return await client.request_token(namespace, name, request)
