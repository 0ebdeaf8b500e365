"""What can be asked of an object beyond reading and changing it: bind, evict, log, token.

Comes in   a request for such a subresource
Goes out   its reply

 1. `exec`, `attach`, `portforward` and `proxy` lead into containers and to nodes, which this server does not reach:
    they are negotiated_error in words.
"""

from __future__ import annotations

from mooring.api import kinds
from mooring.apiserver.call import Call
from mooring.apiserver.http.address import Address
from mooring.apiserver.http.forms import Rendering
from mooring.apiserver.http.objects import with_write_options
from mooring.apiserver.http.reply import TEXT, Reply, success_status
from mooring.apiserver.http.request import Incoming
from mooring.apiserver.registry.binding import bind
from mooring.apiserver.registry.eviction import evict
from mooring.apiserver.registry.pod_log import open_log, read_log_options
from mooring.apiserver.registry.refusals import no_such_thing
from mooring.apiserver.resources import Resource
from mooring.apiserver.server import ApiServer
from mooring.apiserver.storage.errors import not_found
from mooring.apiserver.tokens import issue_token
from mooring.client.errors import StatusError


class Subresources:
    """Answers for `binding`, `eviction`, `log` and `token`."""

    def __init__(self, api_server: ApiServer) -> None:
        self._api_server = api_server

    async def answer(
        self, resource: Resource, call: Call, address: Address, incoming: Incoming, rendering: Rendering
    ) -> Reply:
        kind, subresource = resource.kind, address.subresource
        if kind is kinds.POD and subresource == "binding":
            return await self._bind(call, incoming, rendering)
        if kind is kinds.POD and subresource == "eviction":
            return await self._evict(call, incoming, rendering)
        if kind is kinds.POD and subresource == "log":
            return await self._log(call, incoming)
        if kind is kinds.SERVICE_ACCOUNT and subresource == "token":
            return await self._token(call, incoming, rendering)
        if await self._api_server.lookup.get(kind, call.namespace, call.name) is None:
            raise not_found(kind, call.name)
        raise _unreachable(subresource)

    async def _bind(self, call: Call, incoming: Incoming, rendering: Rendering) -> Reply:
        call = with_write_options(call, incoming, "CreateOptions")
        body = self._api_server.read_other(call, await incoming.body(), incoming.content_type, "v1", "Binding")
        await bind(self._api_server.parts, call, body)
        return rendering.document(201, success_status(201))

    async def _evict(self, call: Call, incoming: Incoming, rendering: Rendering) -> Reply:
        call = with_write_options(call, incoming, "CreateOptions")
        data = await incoming.body()
        body = self._api_server.read_other(call, data, incoming.content_type, "policy/v1", "Eviction")
        await evict(self._api_server.parts, call, body)
        return rendering.document(201, success_status(201))

    async def _log(self, call: Call, incoming: Incoming) -> Reply:
        options = read_log_options(incoming.query)
        lines = await open_log(self._api_server.lookup, call, options, self._api_server.logs, self._api_server.kubelets)
        if lines is None:
            return Reply(204, b"", TEXT)
        return Reply(200, b"", TEXT, stream=lines)

    async def _token(self, call: Call, incoming: Incoming, rendering: Rendering) -> Reply:
        call = with_write_options(call, incoming, "CreateOptions")
        data = await incoming.body()
        body = self._api_server.read_other(
            call, data, incoming.content_type, "authentication.k8s.io/v1", "TokenRequest"
        )
        issued = await issue_token(self._api_server, call, body)
        if issued.warning:
            call.warn(issued.warning)
        return rendering.document(201, issued.document)


def _unreachable(subresource: str) -> StatusError:
    if subresource in ("exec", "attach", "portforward", "proxy"):
        return StatusError(
            f"{subresource} is not served: there is no way from this server into containers and nodes",
            code=501,
            reason="NotImplemented",
        )
    return no_such_thing()
