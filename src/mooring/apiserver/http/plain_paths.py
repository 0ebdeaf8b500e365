"""Paths that are no resources: health, version, discovery, OpenAPI, metrics, the keys of tokens.

Comes in   an address without a resource behind it
Goes out   its reply
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from mooring.api.document import Document
from mooring.apiserver.http.address import Address
from mooring.apiserver.http.discovery_reply import discovery_reply
from mooring.apiserver.http.health_reply import health_reply
from mooring.apiserver.http.metrics import CONTENT_TYPE, RequestMetrics
from mooring.apiserver.http.openapi_reply import openapi_reply
from mooring.apiserver.http.reply import Reply, json_reply, page_not_found
from mooring.apiserver.http.request import Incoming
from mooring.apiserver.registry.refusals import method_not_allowed
from mooring.apiserver.server import ApiServer
from mooring.apiserver.version import VERSION

_HEALTH = ("healthz", "livez", "readyz")
_CACHED = ("Cache-Control", "public, max-age=3600")
_KEYS_TYPE = "application/jwk-set+json"
_PATHS = (
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/readyz",
    "/version",
)


class PlainPaths:
    """Answers for what is no resource."""

    def __init__(self, api_server: ApiServer, metrics: RequestMetrics) -> None:
        self._api_server = api_server
        self._metrics = metrics

    async def answer(self, address: Address, incoming: Incoming) -> Reply:
        """The reply for a path that is no resource."""
        parts = [part for part in address.path.split("/") if part]
        first = parts[0] if parts else ""
        if first in _HEALTH:
            if "//" in address.path or address.path.endswith("/"):
                return page_not_found()
            return health_reply(self._api_server.health, first, "/".join(parts[1:]), incoming.query)
        match parts:
            case [] | ["index.html"]:
                return self._paths()
            case ["api" | "apis", *_]:
                return discovery_reply(self._api_server.discovery, parts, incoming)
            case ["openapi", *_]:
                return openapi_reply(self._api_server.openapi, address.path, incoming)
            case ["metrics"]:
                _require_get(incoming)
                return Reply(200, self._metrics.text(), CONTENT_TYPE)
            case ["version"]:
                _require_get(incoming)
                return Reply(200, _indented(VERSION))
            case [".well-known", "openid-configuration"]:
                _require_get(incoming)
                discovery = json_reply(200, self._api_server.account_tokens.discovery_document("/openid/v1/jwks"))
                return replace(discovery, headers=[_CACHED])
            case ["openid", "v1", "jwks"]:
                _require_get(incoming)
                keys = json_reply(200, self._api_server.account_tokens.keys_document())
                return Reply(200, keys.body, _KEYS_TYPE, [_CACHED])
            case _:
                return page_not_found()

    def _paths(self) -> Reply:
        """Where there is something to get."""
        groups = (f"/apis/{version}" for version in self._api_server.discovery.api_versions() if "/" in version)
        below = {path for version in groups for path in (version, version.rpartition("/")[0])}
        return Reply(200, _indented({"paths": sorted({*_PATHS, *below})}))


def _indented(document: Document) -> bytes:
    """For people, who read these pages as they come."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _require_get(incoming: Incoming) -> None:
    if incoming.method != "GET":
        raise method_not_allowed()
