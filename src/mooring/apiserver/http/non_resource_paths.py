"""Paths that are no resources: health, version, discovery, OpenAPI, metrics, keys of service account tokens.

Input: an address without a resource. Output: its reply.

1. /api and /apis serve aggregated discovery to clients that accept it, with an ETag.
2. /apis and the path of a group answer every method, as in kube-apiserver; other paths GET only.
3. An OpenAPI path with the current hash may be cached forever; one with an old hash is redirected. The index has the
   content type text, as in kube-apiserver.
4. Pages of components (`ApiServer.component_pages`) are served at their paths. /metrics contains those metrics of
   components whose names the server does not have itself.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from mooring import __version__
from mooring.api.document import Document
from mooring.apiserver.discovery import AGGREGATED_KIND, AGGREGATED_VERSION, Discovery
from mooring.apiserver.errors import method_not_allowed, no_such_thing
from mooring.apiserver.http.metrics import CONTENT_TYPE, RequestMetrics, merged_metrics
from mooring.apiserver.http.rendering import TEXT, Reply, error_reply, json_reply, page_not_found, page_reply
from mooring.apiserver.http.request import IncomingRequest, RequestInfo
from mooring.apiserver.openapi.documents import EncodedDocument, OpenApi
from mooring.apiserver.server import PLAN_PAGE, ApiServer
from mooring.apiserver.wire.media import JSON, YAML, check_producible, is_pretty, negotiate, negotiate_discovery
from mooring.apiserver.wire.yaml_text import written_yaml
from mooring.serving.endpoints import health_pages, ping
from mooring.serving.pages import PageRequest, PageResponse, not_found
from mooring.serving.server import Page
from mooring.serving.users import User

VERSION: Document = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.4",
    "gitCommit": f"mooring-{__version__}",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "CPython",
    "platform": "linux/amd64",
}


_GROUP, _, _VERSION = AGGREGATED_VERSION.partition("/")
_AGGREGATED_PARAMETERS = f"g={_GROUP};v={_VERSION};as={AGGREGATED_KIND}"


def discovery_reply(discovery: Discovery, parts: list[str], incoming: IncomingRequest) -> Reply:
    """The reply for `/api`, `/api/v1`, `/apis`, `/apis/apps`, `/apis/apps/v1`."""
    match parts:
        case ["api"] | ["apis"]:
            return _all_groups(discovery, incoming, is_core=parts[0] == "api")
        case ["apis", name]:
            group = discovery.group(name)
            return page_not_found() if group is None else _document_reply(incoming, group)
        case ["apis", group, version] if group:
            return _version(discovery, incoming, group, version)
        case ["api", version]:
            return _version(discovery, incoming, "", version)
        case _:
            return page_not_found()


def _all_groups(discovery: Discovery, incoming: IncomingRequest, *, is_core: bool) -> Reply:
    if is_core:
        _require_get(incoming)
    content_type, is_aggregated = negotiate_discovery(incoming.header(b"accept"))
    if is_aggregated:
        return _aggregated(discovery, incoming, content_type, is_core=is_core)
    if not is_core:
        return _document_reply(incoming, discovery.group_list())
    info = {"clientCIDR": "0.0.0.0/0", "serverAddress": incoming.header(b"host")}
    return _document_reply(incoming, {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [info]})


def _aggregated(discovery: Discovery, incoming: IncomingRequest, content_type: str, *, is_core: bool) -> Reply:
    everything = discovery.aggregated(is_core=is_core)
    headers = [("ETag", everything.etag), ("Vary", "Accept"), ("Cache-Control", "public")]
    if everything.etag in incoming.header(b"if-none-match"):
        return Reply(304, b"", "", headers)
    reply = _written(incoming, everything.document, content_type)
    return Reply(200, reply.body, f"{content_type};{_AGGREGATED_PARAMETERS}", headers)


def _version(discovery: Discovery, incoming: IncomingRequest, group: str, version: str) -> Reply:
    found = discovery.resource_list(f"{group}/{version}" if group else version)
    if found is None:
        return error_reply(no_such_thing()) if discovery.is_built_in_group(group) else page_not_found()
    _require_get(incoming)
    check_producible(incoming.header(b"accept"))
    return _document_reply(incoming, found)


def _document_reply(incoming: IncomingRequest, document: Document) -> Reply:
    return _written(incoming, document, negotiate(incoming.header(b"accept"), converts=False).content_type)


def _written(incoming: IncomingRequest, document: Document, content_type: str) -> Reply:
    if content_type == YAML:
        return Reply(200, written_yaml(document), YAML)
    encoded = msgspec.json.encode(document)
    if is_pretty(incoming.query.text("pretty"), incoming.header(b"user-agent")):
        return Reply(200, msgspec.json.format(encoded, indent=2), JSON)
    return Reply(200, encoded + b"\n", JSON)


_ACCEPTED = frozenset({"application/json", "application/*", "*/*", ""})
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_PROTOBUF_ANSWERED = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Clients request it by a name with an `@`, which is no valid media type."""


def openapi_reply(openapi: OpenApi, path: str, incoming: IncomingRequest) -> Reply:
    """The reply for a path below /openapi."""
    if path == "/openapi/v2":
        if _only_protobuf(incoming):
            return Reply(200, _NO_SCHEMAS, _PROTOBUF_ANSWERED, [("Vary", "Accept")])
        return _document(openapi.v2(), incoming)
    if path == "/openapi/v3":
        return Reply(200, msgspec.json.encode(openapi.index()), TEXT)
    if not path.startswith("/openapi/v3/"):
        return page_not_found()
    written = openapi.v3(path.removeprefix("/openapi/v3/"))
    return Reply(404, b"", "") if written is None else _at_its_hash(written, path, incoming)


def _field(number: int, content: bytes) -> bytes:
    """A field of protobuf that is a message or a text."""
    return bytes([number << 3 | 2, len(content)]) + content


_NO_SCHEMAS = _field(1, b"2.0") + _field(2, _field(1, b"Kubernetes") + _field(2, b"v1.36.4")) + _field(8, b"")
"""A document of version 2 without schemas, in protobuf. kubectl asks for it in this form only about kinds that it has
not found in version 3, to see whether there is anything to check; there never is."""


def _only_protobuf(incoming: IncomingRequest) -> bool:
    clauses = [clause.partition(";")[0].strip() for clause in incoming.header(b"accept").split(",")]
    return PROTOBUF in clauses and not any(clause in _ACCEPTED for clause in clauses)


def _at_its_hash(written: EncodedDocument, path: str, incoming: IncomingRequest) -> Reply:
    digest = incoming.query.text("hash")
    if not digest:
        return _document(written, incoming)
    if digest != written.digest:
        return Reply(301, b"", "", [("Location", f"{path}?hash={written.digest}"), ("ETag", f'"{written.digest}"')])
    return _document(written, incoming, [("Cache-Control", "public, immutable")])


def _document(
    written: EncodedDocument, incoming: IncomingRequest, headers: list[tuple[str, str]] | None = None
) -> Reply:
    clauses = (clause.partition(";")[0].strip() for clause in incoming.header(b"accept").split(","))
    if not any(clause in _ACCEPTED for clause in clauses):
        return Reply(406, b"", "", [("Vary", "Accept")])
    headers = [*(headers or ()), ("ETag", f'"{written.digest}"'), ("Vary", "Accept")]
    if f'"{written.digest}"' in incoming.header(b"if-none-match"):
        return Reply(304, b"", "", headers)
    return Reply(200, written.body, JSON, headers)


_HEALTH = ("healthz", "livez", "readyz")
_POSTED = frozenset({"/console/data/plan", "/console/data/pods", PLAN_PAGE})
"""The pages of components that take a request body."""
_POSTED_BELOW = "/console/do/"
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


class NonResourcePaths:
    """Serves the paths that are not resources."""

    def __init__(self, api_server: ApiServer, metrics: RequestMetrics) -> None:
        self._api_server = api_server
        self._metrics = metrics

    async def answer(self, info: RequestInfo, incoming: IncomingRequest, user: User) -> Reply:
        """The reply for a path that is no resource."""
        parts = [part for part in info.path.split("/") if part]
        first = parts[0] if parts else ""
        if first in _HEALTH:
            return page_reply(self._health(first, PageRequest(incoming.method, info.path, incoming.query.everything())))
        match parts:
            case [] | ["index.html"]:
                return self._paths()
            case ["api" | "apis", *_]:
                return discovery_reply(self._api_server.discovery, parts, incoming)
            case ["openapi", *_]:
                return openapi_reply(self._api_server.openapi, info.path, incoming)
            case ["metrics"]:
                _require_get(incoming)
                return Reply(200, await self._metrics_text(info, incoming, user), CONTENT_TYPE)
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
                return await self._component_page(info, incoming, user)

    def _health(self, name: str, request: PageRequest) -> PageResponse:
        checks = {"ping": ping, **(self._api_server.ready_checks if name == "readyz" else {})}
        page = health_pages({name: checks}).get(request.path)
        return not_found() if page is None else page(request)

    async def _component_page(self, info: RequestInfo, incoming: IncomingRequest, user: User) -> Reply:
        page = self._api_server.component_pages.get(info.path)
        if page is None:
            return page_not_found()
        is_posted = info.path in _POSTED or info.path.startswith(_POSTED_BELOW)
        if incoming.method != ("POST" if is_posted else "GET"):
            raise method_not_allowed()
        requested = await _requested(info, incoming)
        with incoming.ends_with_client():
            return page_reply(await self._page_response(page, requested, user))

    async def component_response(self, requested: PageRequest, user: User) -> PageResponse:
        """The response of a component's page, for a part of a live stream."""
        page = self._api_server.component_pages.get(requested.path)
        return not_found() if page is None else await self._page_response(page, requested, user)

    async def _metrics_text(self, info: RequestInfo, incoming: IncomingRequest, user: User) -> bytes:
        own, page = self._metrics.text(), self._api_server.component_pages.get(info.path)
        if page is None:
            return own
        response = await self._page_response(page, await _requested(info, incoming), user)
        return merged_metrics(own, response.body) if response.code == 200 else own

    async def _page_response(self, page: Page, requested: PageRequest, user: User) -> PageResponse:
        return await self._api_server.component_page(page, requested, user)

    def _paths(self) -> Reply:
        """The paths that the index lists."""
        groups = (f"/apis/{version}" for version in self._api_server.discovery.api_versions() if "/" in version)
        below = {path for version in groups for path in (version, version.rpartition("/")[0])}
        return Reply(200, _indented({"paths": sorted({*_PATHS, *below, *self._api_server.component_pages})}))


async def _requested(info: RequestInfo, incoming: IncomingRequest) -> PageRequest:
    body = await incoming.body() if incoming.method == "POST" else b""
    return PageRequest(incoming.method, info.path, incoming.query.everything(), body=body)


def _indented(document: Document) -> bytes:
    """Indented JSON, because people read these pages."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _require_get(incoming: IncomingRequest) -> None:
    if incoming.method != "GET":
        raise method_not_allowed()
