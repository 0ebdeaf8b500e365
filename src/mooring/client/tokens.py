"""Tokens of service accounts: a second, smaller promise, kept by those clients that have an API server at their end.

Comes in   a TokenRequest for an account
Goes out   the request with its token

Not part of the client promise: a bare store signs nothing, and only kubelets ask.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from mooring.client.errors import BadRequestError
from mooring.client.interface import Client, JsonObject


@runtime_checkable
class TokenRequests(Protocol):
    """Who can be asked for tokens."""

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes: ...


async def request_token(client: Client, namespace: str, name: str, request: JsonObject) -> bytes:
    """A token for the service account of that name. Raises `ClientError`."""
    if not isinstance(client, TokenRequests):
        raise BadRequestError(f"tokens for {namespace}/{name} are given by API servers, not by {type(client).__name__}")
    return await client.request_token(namespace, name, request)
