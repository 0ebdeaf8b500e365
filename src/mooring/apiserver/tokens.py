"""Issuing a token for a service account, for whoever asks: over HTTP or from inside.

Comes in   a TokenRequest for an account
Goes out   the request with its token; or a `StatusError`
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import SERVICE_ACCOUNT
from mooring.apiserver.access.token_requests import IssuedToken, requested_token
from mooring.apiserver.admission.promise import Attempt
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.server import ApiServer
from mooring.apiserver.storage.errors import not_found


async def issue_token(api_server: ApiServer, call: Call, request: Document) -> IssuedToken:
    """Admitted, and signed for an account that is there. Raises `StatusError`s."""
    await api_server.parts.admission.admit(Attempt(Operation.CREATE, call, request, None, body_kind="TokenRequest"))
    account = await api_server.lookup.get(SERVICE_ACCOUNT, call.namespace, call.name)
    if account is None:
        raise not_found(SERVICE_ACCOUNT, call.name)
    return requested_token(request, account, api_server.account_tokens, api_server.peek, api_server.clock)
