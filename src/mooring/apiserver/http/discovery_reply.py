"""Discovery over HTTP: which document, in which form.

Comes in   paths below /api and /apis that are no resources
Goes out   their replies

 1. Everything at once is told at /api and /apis to those who ask for it. Who has it already need not take it again: the
    reply has an ETag.
 2. Every method is answered at /apis and at a group, as kube-apiserver does; elsewhere only GET.
"""

from __future__ import annotations

import msgspec

from mooring.api.document import Document
from mooring.apiserver.discovery.documents import AGGREGATED_KIND, AGGREGATED_VERSION, Discovery
from mooring.apiserver.http.reply import JSON, YAML, Reply, error_reply, page_not_found
from mooring.apiserver.http.request import Incoming
from mooring.apiserver.registry.refusals import method_not_allowed, no_such_thing
from mooring.apiserver.wire.media import check_producible, is_pretty, negotiate, negotiate_discovery
from mooring.apiserver.wire.yaml_writing import written_yaml

_GROUP, _, _VERSION = AGGREGATED_VERSION.partition("/")
_AGGREGATED_PARAMETERS = f"g={_GROUP};v={_VERSION};as={AGGREGATED_KIND}"


def discovery_reply(discovery: Discovery, parts: list[str], incoming: Incoming) -> Reply:
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


def _all_groups(discovery: Discovery, incoming: Incoming, *, is_core: bool) -> Reply:
    if is_core:
        _require_get(incoming)
    content_type, is_aggregated = negotiate_discovery(incoming.header(b"accept"))
    if is_aggregated:
        return _aggregated(discovery, incoming, content_type, is_core=is_core)
    if not is_core:
        return _document_reply(incoming, discovery.group_list())
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": incoming.header(b"host")}
    return _document_reply(
        incoming, {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}
    )


def _aggregated(discovery: Discovery, incoming: Incoming, content_type: str, *, is_core: bool) -> Reply:
    everything = discovery.aggregated(is_core=is_core)
    headers = [("ETag", everything.etag), ("Vary", "Accept"), ("Cache-Control", "public")]
    if everything.etag in incoming.header(b"if-none-match"):
        return Reply(304, b"", "", headers)
    reply = _written(incoming, everything.document, content_type)
    return Reply(200, reply.body, f"{content_type};{_AGGREGATED_PARAMETERS}", headers)


def _version(discovery: Discovery, incoming: Incoming, group: str, version: str) -> Reply:
    found = discovery.resource_list(f"{group}/{version}" if group else version)
    if found is None:
        return error_reply(no_such_thing()) if discovery.is_built_in_group(group) else page_not_found()
    _require_get(incoming)
    check_producible(incoming.header(b"accept"))
    return _document_reply(incoming, found)


def _require_get(incoming: Incoming) -> None:
    if incoming.method != "GET":
        raise method_not_allowed()


def _document_reply(incoming: Incoming, document: Document) -> Reply:
    return _written(incoming, document, negotiate(incoming.header(b"accept"), converts=False).content_type)


def _written(incoming: Incoming, document: Document, content_type: str) -> Reply:
    if content_type == YAML:
        return Reply(200, written_yaml(document), YAML)
    encoded = msgspec.json.encode(document)
    if is_pretty(incoming.query.text("pretty"), incoming.header(b"user-agent")):
        return Reply(200, msgspec.json.format(encoded, indent=2), JSON)
    return Reply(200, encoded + b"\n", JSON)
