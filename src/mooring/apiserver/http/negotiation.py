"""Negotiation: which form of an answer a client wants.

Comes in   the Accept header and a few parameters
Goes out   a `Rendering`; or 406; and refusals in the form that the client wants
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from mooring.apiserver.http.forms import Form, Included, Rendering
from mooring.apiserver.http.reply import Reply, error_reply, status_document
from mooring.apiserver.http.request import Incoming
from mooring.apiserver.registry.refusals import invalid_object
from mooring.apiserver.server import ApiServer
from mooring.apiserver.validation.fields import not_supported
from mooring.apiserver.wire.media import YAML, check_producible, is_pretty, negotiate, negotiate_error
from mooring.apiserver.wire.yaml_writing import written_yaml
from mooring.client.errors import StatusError

WATCHED = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")


def negotiated(
    api_server: ApiServer, incoming: Incoming, *, is_watch: bool = False, is_list: bool = False
) -> Rendering:
    """The form that the client wants. Raises a 406."""
    accept = incoming.header(b"accept")
    check_producible(accept, PRODUCED_WATCHABLE if is_watch or is_list else PRODUCED)
    wanted = negotiate(accept, is_watch=is_watch)
    form = Form.OBJECT
    included = Included.METADATA
    if wanted.conversion is not None:
        form = Form.TABLE if wanted.conversion.kind == "Table" else Form.METADATA
        if form is Form.TABLE:
            included = _included(incoming.query.text("includeObject"))
    pretty = incoming.query.texts("pretty")
    return Rendering(
        now_s=api_server.clock.wall_s(),
        form=form,
        version=wanted.conversion.api_version if wanted.conversion is not None else "meta.k8s.io/v1",
        is_yaml=wanted.content_type == YAML,
        is_pretty=wanted.is_pretty or is_pretty(pretty[0] if pretty else None, incoming.header(b"user-agent")),
        included=included,
        is_for_lists=wanted.conversion is not None and wanted.conversion.kind.endswith("List"),
    )


def negotiated_error(incoming: Incoming, error: StatusError) -> Reply:
    """A refusal, as the client wants to read it."""
    wanted = negotiate_error(incoming.header(b"accept"))
    reply = error_reply(error)
    if wanted.content_type == YAML:
        return replace(reply, body=written_yaml(status_document(error)), content_type=YAML)
    if wanted.is_pretty or is_pretty(incoming.query.text("pretty"), incoming.header(b"user-agent")):
        return replace(reply, body=msgspec.json.format(reply.body, indent=2))
    return reply


PRODUCED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
PRODUCED_WATCHABLE = (*PRODUCED, *WATCHED)


def _included(text: str) -> Included:
    try:
        return Included(text or "Metadata")
    except ValueError:
        error = not_supported("includeObject", text, ("Metadata", "None", "Object", ""))
        raise _bad_table_options(error.message) from None


def _bad_table_options(text: str) -> StatusError:
    return invalid_object("TableOptions", "meta.k8s.io", "", [not_supported("includeObject", text, ())])
