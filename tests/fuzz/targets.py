"""The parsers of untrusted input, as fuzz targets: one function for each, which takes any bytes.

Input: bytes. Output: nothing; an exception that the target does not expect, or a broken invariant, is a finding.

 1. `expects` lists the exceptions by which a parser rejects an input. Every other exception is a finding, among them
    `RecursionError` and `MemoryError`.
 2. Most targets also check an invariant of what was accepted: a second way to read it gives the same.
 3. A target depends on its input only: no clock, no randomness, no state that an earlier input left behind.
 4. The first byte of some inputs chooses a variant (a kind, a form of patch). It is a printable character, so that
    seeds can be read and written with an editor.

`make fuzz` feeds mutated inputs (`coverage.py`); `make test` feeds the files of `corpus/` (`test_targets.py`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import msgspec

from mooring.api.cel.costs import Meter
from mooring.api.cel.errors import CostExceeded, DeviceSelectorError, EvaluationFailure, SelectorEvaluationError
from mooring.api.cel.selector import CelDevice, compile_device_selector, worst_selector_cost
from mooring.api.errors import ObjectError, QuantityError
from mooring.api.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, EVENT, NODE, POD, RESOURCE_CLAIM, Kind
from mooring.api.patching.json_patch import PatchError, apply_json_patch, apply_merge_patch
from mooring.api.patching.strategic import apply_strategic_patch
from mooring.api.quantity import parse_quantity
from mooring.api.schema.types import struct_of_kind
from mooring.api.views.devices import DeviceAttribute
from mooring.api.yaml import load_documents
from mooring.apiserver.access.authentication import Authenticator, FixedTokens
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.access.impersonation import requested_user
from mooring.apiserver.access.service_account_tokens import ServiceAccountTokens, TokenSigner
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.custom.rule_compiling import compiled_rules, declared_type
from mooring.apiserver.custom.rules import cel_value
from mooring.apiserver.custom.schema import read_schema
from mooring.apiserver.http.request import IncomingRequest, RequestLimits, check_list_options, read_request_info
from mooring.apiserver.registry.reading import check_continue_token
from mooring.apiserver.storage.selection import check_selectors, matcher_of, parse_field_selector
from mooring.apiserver.storage.storage import read_continue_token
from mooring.apiserver.wire.custom_bodies import decode_custom, go_numbers
from mooring.apiserver.wire.decode import (
    canonical_object,
    decode_body,
    decode_options,
    patched_strategically,
    read_patch,
)
from mooring.apiserver.wire.examine import DecodingError
from mooring.apiserver.wire.identity import TypeMeta
from mooring.apiserver.wire.media import (
    body_form,
    check_producible,
    negotiate,
    negotiate_discovery,
    negotiate_error,
)
from mooring.apiserver.wire.protobuf import MAGIC
from mooring.apiserver.wire.yaml_text import written_yaml
from mooring.client.errors import StatusError
from mooring.client.interface import PatchForm
from mooring.client.kubeconfig.entries import Kubeconfig, KubeconfigError, read_kubeconfig
from mooring.client.kubeconfig.load import connection_of
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.serving.http.parser import ParseFailure, RequestParser, ServerLimits
from mooring.serving.http.request import Request
from mooring.serving.users import User

CORPUS = Path(__file__).parent / "corpus"
WORDS = Path(__file__).parent / "words"
INPUT_BYTES_MAX = 4_096
"""Longer inputs are not generated. Costs that grow with the size of a body are tested by `make soak`."""


@dataclass(frozen=True, slots=True)
class Target:
    """One parser."""

    name: str
    run: Callable[[bytes], None]
    expects: tuple[type[Exception], ...]

    def __call__(self, data: bytes) -> None:
        """Parse the input. Raises on a finding."""
        try:
            self.run(data)
        except self.expects as rejection:
            _ = str(rejection)  # the message is sent to the client, so it must be printable

    def seeds(self) -> list[Path]:
        """The inputs in the tree: examples of the grammar, and what earlier runs found."""
        return sorted((CORPUS / self.name).iterdir())

    @property
    def words(self) -> Path:
        """Tokens of the grammar for the mutations, in the syntax of libFuzzer's dictionaries."""
        return WORDS / f"{self.name}.dict"


TARGETS: dict[str, Target] = {}


def target(*expects: type[Exception]) -> Callable[[Callable[[bytes], None]], Callable[[bytes], None]]:
    def register(run: Callable[[bytes], None]) -> Callable[[bytes], None]:
        TARGETS[run.__name__] = Target(run.__name__, run, expects)
        return run

    return register


def _variant(data: bytes, count: int) -> tuple[int, bytes]:
    """The variant that the first byte chooses (`0` is the first), and the rest."""
    return (data[0] - ord("0")) % count if data else 0, data[1:]


# --- HTTP ---------------------------------------------------------------------------------------------------------

_PIECE_BYTES = (1, 2, 3, 7, 16, 64)


@target()
def http_head(data: bytes) -> None:
    """Requests on a connection. However the bytes are cut into pieces, the requests are the same: a proxy in front of
    the server must not find other requests than the server."""
    variant, data = _variant(data, len(_PIECE_BYTES))
    whole = _parsed([data])
    size = _PIECE_BYTES[variant]
    pieces = _parsed([data[start : start + size] for start in range(0, len(data), size)])
    assert whole == pieces, f"in one piece: {whole}; in pieces of {size}: {pieces}"


def _parsed(pieces: Sequence[bytes]) -> list[object]:
    found: list[Request | ParseFailure] = []
    parser = RequestParser(ServerLimits(), found.append)
    for piece in pieces:
        parser.feed(piece)
    shown: list[object] = []
    for each in found:
        if isinstance(each, ParseFailure):
            # A method that is cut in two is not recognised as one: the answer is 400 instead of 405.
            shown.append("failure")
            continue
        body = each.body
        is_complete = body is None or body.is_complete
        shown.append((each.method, each.path, dict(each.query), each.headers(), each.is_kept_alive, is_complete))
    parser.close()
    return shown


@target(StatusError)
def http_request(data: bytes) -> None:
    """The path, the query and the headers of a request: what it is about, who sends it, how it is answered."""
    found: list[Request | ParseFailure] = []
    parser = RequestParser(ServerLimits(), found.append)
    parser.feed(data)
    parser.close()
    if not found or isinstance(found[0], ParseFailure):
        return
    request = found[0]
    incoming = IncomingRequest(request, RequestLimits())
    read_request_info(request.method, request.path, is_watch=incoming.query.flag("watch"))
    _ = (incoming.manager, incoming.content_type)
    steps: list[Callable[[], object]] = [
        lambda: _authenticator().authenticate(None, request.header(b"authorization")),
        lambda: requested_user(request.headers(b"impersonate-")),
        lambda: body_form(request.header(b"content-type")),
        incoming.query.check_timeout,
        incoming.query.delete_options,
        lambda: check_list_options(incoming.query.list_options()),
        lambda: read_continue_token("/registry/pods/", incoming.query.text("continue")),
        lambda: check_continue_token(incoming.query.text("continue")),
        *(partial(incoming.query.write_options, f"{verb}Options") for verb in ("Create", "Update", "Patch")),
        *(partial(read, request.header(b"accept")) for read in (check_producible, negotiate, negotiate_discovery)),
        lambda: negotiate_error(request.header(b"accept")),
    ]
    for step in steps:
        try:
            step()
        except StatusError as error:
            _ = str(error).encode("utf-8", "surrogateescape")  # the answer can be written


@cache
def _authenticator() -> Authenticator:
    clock = SystemClock()
    tokens = ServiceAccountTokens(TokenSigner(new_key()), clock, Entropy(1), lambda plural, namespace, name: None)
    return Authenticator(clock, FixedTokens({"secret": User("a")}), tokens, is_anonymous_allowed=True)


# --- bodies -------------------------------------------------------------------------------------------------------

_KINDS: Sequence[Kind] = (POD, CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, NODE, RESOURCE_CLAIM, EVENT)
_CUSTOM = TypeMeta("example.com/v1", "Widget")


@target(StatusError)
def http_body(data: bytes) -> None:
    """JSON bodies of several kinds, of a custom kind, and of DELETE. A canonical document is read as itself."""
    variant, data = _variant(data, len(_KINDS) + 2)
    if variant == len(_KINDS):
        msgspec.json.encode(go_numbers(decode_custom(data, "application/json", _CUSTOM).document))
    elif variant == len(_KINDS) + 1:
        struct = struct_of_kind("v1", "DeleteOptions")
        assert struct is not None
        decode_options(data, "application/json", struct)
    else:
        _decode_twice(data, "application/json", _KINDS[variant])


@target(StatusError, ObjectError)
def yaml(data: bytes) -> None:
    """YAML bodies and manifests. What is written as YAML is read as the same data."""
    variant, data = _variant(data, len(_KINDS) + 2)
    if variant == len(_KINDS):
        decode_custom(data, "application/yaml", _CUSTOM)
    elif variant == len(_KINDS) + 1:
        for document in load_documents(data, "file"):
            document.line_of("spec.containers[0].image")
            if isinstance(document.data, dict):
                written = written_yaml(document.data)
                again = load_documents(written, "written")
                assert [each.data for each in again] == [document.data], f"{document.data!r} is written as {written!r}"
    else:
        _decode_twice(data, "application/yaml", _KINDS[variant])


@target(StatusError)
def protobuf(data: bytes) -> None:
    """Protobuf bodies of several kinds, as the clients in Go send them."""
    variant, data = _variant(data, len(_KINDS) * 2)
    kind = _KINDS[variant % len(_KINDS)]
    if variant >= len(_KINDS):  # the object alone, so that mutations need not find the envelope
        identity = _field(1, kind.api_version.encode()) + _field(2, kind.kind.encode())
        data = MAGIC + _field(1, identity) + _field(2, data)
    _decode_twice(data, "application/vnd.kubernetes.protobuf", kind)


def _field(number: int, value: bytes) -> bytes:
    length, size = b"", len(value)
    while size >= 0x80:
        length, size = length + bytes((size & 0x7F | 0x80,)), size >> 7
    return bytes((number << 3 | 2,)) + length + bytes((size,)) + value


def _decode_twice(data: bytes, content_type: str, kind: Kind) -> None:
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None
    document = decode_body(data, content_type, kind, struct, FieldValidation.WARN).document
    written = msgspec.json.encode(document)
    again = decode_body(written, "application/json", kind, struct, FieldValidation.WARN)
    assert not again.strict_errors, f"a canonical document has {again.strict_errors}"
    assert msgspec.json.encode(again.document) == written, f"{written!r} is read as {again.document}"


# --- patches ------------------------------------------------------------------------------------------------------

_PATCHED = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "a", "namespace": "default", "labels": {"a": "b", "c/d": "e"}, "annotations": {"~": "/"}},
    "spec": {
        "containers": [
            {"name": "one", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
            {"name": "two"},
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
_FORMS = (PatchForm.JSON, PatchForm.MERGE, PatchForm.STRATEGIC)


@target(PatchError, StatusError, DecodingError)
def json_patch(data: bytes) -> None:
    """JSON, merge and strategic merge patches of a pod. The pod itself does not change."""
    variant, data = _variant(data, len(_FORMS))
    form = _FORMS[variant]
    before = msgspec.json.encode(_PATCHED)
    try:
        patch = read_patch(data, form, _call())
        match form:
            case PatchForm.JSON:
                patched = apply_json_patch(_PATCHED, patch.content)
            case PatchForm.MERGE:
                patched = apply_merge_patch(_PATCHED, patch.content)
            case _:
                patched = apply_strategic_patch(_PATCHED, patch.content, "v1", "Pod")
        struct = struct_of_kind("v1", "Pod")
        assert struct is not None
        read = patched_strategically if form is PatchForm.STRATEGIC else canonical_object
        msgspec.json.encode(read(struct, patched, POD).document)
    finally:
        assert msgspec.json.encode(_PATCHED) == before, "the patched object has changed"


def _call() -> Call:
    return Call("patch", POD, User("fuzz"), 0.0, "1970-01-01T00:00:00Z", "default", "a")


# --- texts --------------------------------------------------------------------------------------------------------

_SELECTED = msgspec.json.encode(_PATCHED)
_SELECTABLE = frozenset({"metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "spec.hostNetwork"})


@target(StatusError)
def selectors(data: bytes) -> None:
    """A label selector, or a field selector, of a list."""
    variant, data = _variant(data, 2)
    text = data.decode("utf-8", "replace")
    labels, fields = (text, "") if variant == 0 else ("", text)
    check_selectors(labels, fields)
    if any(term.path not in _SELECTABLE for term in parse_field_selector(fields)):
        return  # the registry rejects it
    matcher = matcher_of(labels, fields)
    matcher_of.cache_clear()
    if matcher is not None:
        matcher.matches(_SELECTED)


@target(QuantityError)
def quantities(data: bytes) -> None:
    """A quantity. Its canonical form is the same amount, and canonical."""
    quantity = parse_quantity(data.decode("utf-8", "replace"))
    again = parse_quantity(str(quantity))
    assert str(again) == str(quantity), f"{quantity} is read as {again}"
    # Fractions of a nano were rounded once, and amounts beyond 64 bits were cut off when they were read.
    assert again.amount_nano == quantity.amount_nano, f"{quantity}: {quantity.amount_nano}, then {again.amount_nano}"
    quantity.value()
    quantity.milli_value()


_DEVICE = CelDevice(
    "gpu.example.com",
    {
        "model": DeviceAttribute(string="a100"),
        "index": DeviceAttribute(int_value=3),
        "other.com/flag": DeviceAttribute(bool_value=True),
        "driverVersion": DeviceAttribute(version="1.2.3"),
    },
    {"memory": "40Gi", "other.com/cores": "12"},
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "part": {"type": "number"},
        "when": {"type": "string", "format": "date-time"},
        "items": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}
_SELF = {
    "text": "Ab1.é",
    "count": 7,
    "part": 0.5,
    "when": "2026-01-01T00:00:00Z",
    "items": ["a", "b", "a"],
    "map": {"x": 1, "y": 2},
}


@target(DeviceSelectorError, SelectorEvaluationError, EvaluationFailure, CostExceeded)
def cel(data: bytes) -> None:
    """A device selector, or a rule of a CustomResourceDefinition: compiled, priced, evaluated."""
    variant, data = _variant(data, 2)
    text = data.decode("utf-8", "replace")  # what JSON strings hold
    if variant == 0:
        selector = compile_device_selector(text)
        worst_selector_cost(text)
        selector.matches(_DEVICE)
        return
    schema = read_schema(
        {**_SCHEMA, "x-kubernetes-validations": [{"rule": text, "messageExpression": "'' + self.text"}]}
    )
    declared = declared_type(schema, is_root=True)
    assert declared is not None
    (rule,) = compiled_rules(schema, declared)
    if rule.program is not None:
        value = cel_value(_SELF, schema, is_root=True)
        rule.program.evaluate_all((value, value), Meter())


@target(KubeconfigError)
def kubeconfig(data: bytes) -> None:
    """A kubeconfig, and the connection of its current context. No plug-in runs."""
    file = Path(_directory().name) / "config"
    file.write_bytes(data)
    config = read_kubeconfig(str(file))
    if not _names_foreign_files(config):
        connection_of(config, SystemClock(), environment={})


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Made once, because most of an input's time would go into it."""
    return tempfile.TemporaryDirectory()


def _names_foreign_files(config: Kubeconfig) -> bool:
    """Whether it names files outside of its own directory. They are not read: `/dev/zero` has no end."""
    files = [cluster.entry.certificate_authority for cluster in config.clusters.values()]
    for user in config.users.values():
        files += [user.entry.client_certificate, user.entry.client_key, user.entry.token_file]
    return any("/" in file or ".." in file for file in files)
