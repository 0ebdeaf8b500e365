"""Content types: of a request body, and of the response that the client accepts.

Input: the headers Content-Type, Accept, Accept-Encoding and User-Agent, and the query. Output: a `BodyForm`; a
`ResponseFormat`; a 406 or 415 with kube-apiserver's message.

1. Responses are JSON or YAML. A client that prefers protobuf gets JSON if it accepts anything else: Go clients add
   `*/*`, and decode by the content type of the response. A client that accepts protobuf only gets 406.
2. The first clause of Accept that can be served wins, those with a higher q first.
3. There are two checks: the router checks bare types first (`check_producible`), the handler checks their parameters
   (`negotiate`).
4. `?pretty=true`, or without that parameter curl, Wget and browsers, get indented JSON.
5. Bodies are JSON, YAML or protobuf. CBOR is rejected: kube-apiserver disables it by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from mooring.api.caches import BoundedCache
from mooring.client.errors import StatusError

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

SUPPORTED = (JSON, YAML, PROTOBUF)
"""Of bodies and of responses, as errors list them. Protobuf responses are listed, although we send none."""
SUPPORTED_STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")

METADATA_GROUP = "meta.k8s.io"
METADATA_VERSIONS = ("v1", "v1beta1")

HEADERS_REMEMBERED_MAX = 1_024


class BodyForm(Enum):
    """The format of a body."""

    JSON = JSON
    YAML = YAML
    PROTOBUF = PROTOBUF


class UnsupportedMediaTypeError(StatusError):
    code, reason = 415, "UnsupportedMediaType"


class NotAcceptableError(StatusError):
    code, reason = 406, "NotAcceptable"


@dataclass(frozen=True, slots=True)
class Conversion:
    """The requested form instead of the object: `Table`, `PartialObjectMetadata`, `PartialObjectMetadataList`."""

    kind: str
    version: str
    """`v1`, or `v1beta1` for older clients."""

    @property
    def api_version(self) -> str:
        return f"{METADATA_GROUP}/{self.version}"


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """The format of a response."""

    content_type: str = JSON
    conversion: Conversion | None = None
    is_pretty: bool = False
    """Whether the Accept header itself asks for indented JSON."""

    @property
    def is_table(self) -> bool:
        return self.conversion is not None and self.conversion.kind == "Table"


# --- bodies -----------------------------------------------------------------------------------------------------

_FORMS = {form.value: form for form in BodyForm}


def body_form(content_type: str) -> BodyForm:
    """The format of a body; JSON by default. Raises a 415."""
    if not content_type or content_type == JSON:
        return BodyForm.JSON
    name, _, parameters = content_type.partition(";")
    form = _FORMS.get(name.strip().lower())
    if form is None or not _are_parameters(parameters):
        accepted = ", ".join(SUPPORTED)
        raise UnsupportedMediaTypeError(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    return form


def _are_parameters(text: str) -> bool:
    *inner, last = (part.strip() for part in text.split(";"))
    return all("=" in part for part in inner) and (not last or "=" in last)


# --- answers ----------------------------------------------------------------------------------------------------


def check_producible(accept: str, produced: Sequence[str] = SUPPORTED) -> None:
    """The router's look at an Accept header: bare types, without parameters. Raises a 406."""
    if not accept or accept == JSON:
        return
    types = [clause.partition(";")[0].strip(" ") for clause in accept.split(",")]
    if "*/*" not in types and not any(name in produced for name in types):
        available = ", ".join(produced)
        raise NotAcceptableError(f"406: Not Acceptable\n\nAvailable representations: {available}", details={})


def negotiate(accept: str, *, is_watch: bool = False, converts: bool = True, has_table: bool = True) -> ResponseFormat:
    """The format of a response. Raises a 406.

    `converts` is false where there is nothing to convert: in discovery, and for errors. Without a table only metadata
    can be had instead of the object.
    """
    if not accept or accept == JSON:
        return _AS_IT_IS
    question = (accept, is_watch, converts, has_table)
    negotiated = _remembered.get(question)
    if negotiated is None:
        negotiated = _remembered.put(question, _negotiated(*question))
    return negotiated


def negotiate_discovery(accept: str) -> tuple[str, bool]:
    """The media type of discovery, and whether it is aggregated. Raises a 406."""
    if not accept or accept == JSON:
        return JSON, False
    for clause in _ordered(list(_clauses(accept))):
        for content_type in (JSON, YAML):
            if clause.matches(content_type):
                if tuple(clause.parameters.get(name) for name in ("as", "g", "v")) == _AGGREGATED_DISCOVERY:
                    return content_type, True
                if _served(clause, content_type, converts=False) is not None:
                    return content_type, False
    raise NotAcceptableError(_only(SUPPORTED))


def negotiate_error(accept: str) -> ResponseFormat:
    """The format of an error: as accepted if possible, otherwise indented JSON; never a 406."""
    try:
        return negotiate(accept, converts=False)
    except NotAcceptableError:
        return _FOR_PEOPLE


def is_pretty(pretty: str | None, user_agent: str) -> bool:
    """Whether JSON is indented: the query's `pretty` (None if absent), or a program that people look at."""
    if pretty:
        return pretty in _TRUE
    return user_agent.startswith(_PEOPLE)


_AS_IT_IS = ResponseFormat()
_FOR_PEOPLE = ResponseFormat(is_pretty=True)
_AGGREGATED_DISCOVERY = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
_PEOPLE = ("curl", "Wget", "Mozilla/5.0")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_remembered: BoundedCache[tuple[str, bool, bool, bool], ResponseFormat] = BoundedCache(HEADERS_REMEMBERED_MAX)


def _negotiated(accept: str, is_watch: bool, converts: bool, has_table: bool) -> ResponseFormat:
    for clause in _ordered(list(_clauses(accept))):
        for content_type in (JSON, YAML):
            if clause.matches(content_type):
                negotiated = _served(clause, content_type, converts)
                if negotiated is not None and (has_table or not negotiated.is_table):
                    if is_watch and content_type == YAML:
                        raise NotAcceptableError(_only(SUPPORTED_STREAMS))
                    return negotiated
    raise NotAcceptableError(_only(SUPPORTED))


def _only(types: Sequence[str]) -> str:
    return f"only the following media types are accepted: {', '.join(types)}"


def _served(clause: _AcceptClause, content_type: str, converts: bool) -> ResponseFormat | None:
    parameters = clause.parameters
    stream = parameters.get("stream", "")
    if stream and (stream != "watch" or content_type == YAML):
        return None
    if parameters.get("sv", "v1") not in ("v1", ""):
        return None
    conversion = None
    if any(name in parameters for name in ("as", "g", "v")):
        conversion = _conversion(parameters)
        if conversion is None or not converts:
            return None
    return ResponseFormat(content_type, conversion, parameters.get("pretty") == "1")


def _conversion(parameters: dict[str, str]) -> Conversion | None:
    kind, group, version = (parameters.get(name, "") for name in ("as", "g", "v"))
    if group != METADATA_GROUP or version not in METADATA_VERSIONS or kind not in _CONVERSIONS:
        return None
    return Conversion(kind, version)


_CONVERSIONS = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


# --- the Accept header ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _AcceptClause:
    type: str
    subtype: str
    quality: float
    parameters: dict[str, str]

    def matches(self, content_type: str) -> bool:
        if self.type == "*" and self.subtype == "*":
            return True
        kind, _, name = content_type.partition("/")
        return self.type == kind and self.subtype in (name, "*")

    def comes_before(self, other: _AcceptClause) -> bool:
        return (
            self.quality > other.quality
            or (self.type != "*" and other.type == "*")
            or (self.subtype != "*" and other.subtype == "*")
        )


def _clauses(accept: str) -> Iterator[_AcceptClause]:
    for part in accept.split(","):
        name, *rest = part.strip(" ").split(";")
        kind, slash, subtype = (text.strip(" ") for text in name.partition("/"))
        if "/" in subtype or (not subtype and (slash or kind != "*")):
            continue
        quality, parameters = 1.0, {}
        for parameter in rest:
            key, _, value = parameter.partition("=")
            if not value or "=" in value:
                continue
            if key.strip(" ") == "q":
                quality = _quality(value)
            else:
                parameters[key.strip(" ")] = value.strip(" ")
        yield _AcceptClause(kind, subtype or "*", quality, parameters)


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _ordered(clauses: list[_AcceptClause]) -> list[_AcceptClause]:
    """Sorted by insertion, as Go sorts a few: the order is no proper one (`comes_before` may hold both ways), so that
    another algorithm would give another result."""
    for index in range(1, len(clauses)):
        position = index
        while position > 0 and clauses[position].comes_before(clauses[position - 1]):
            clauses[position - 1], clauses[position] = clauses[position], clauses[position - 1]
            position -= 1
    return clauses
