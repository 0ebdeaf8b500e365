"""The spec cache changes no result: neither what is stored nor errors and warnings."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry.create import create
from mooring.apiserver.registry.spec_cache import ENTRY_BYTES, SpecCache, SpecInputs, ValidationResult, split_body
from mooring.apiserver.server import ApiServer
from mooring.client.errors import StatusError
from mooring.serving.users import User
from tests.api_servers import with_api_server
from tests.apiserver.pod_strategies import NAMES, PODS

NS = "default"
NOW = "2026-01-01T00:00:00Z"
LENIENT, WARN, STRICT = FieldValidation.IGNORE, FieldValidation.WARN, FieldValidation.STRICT


class NoCache(SpecCache):
    """A cache that stores nothing."""

    def defaulted_spec(self, received: bytes, field_validation: FieldValidation) -> Document | None:
        return None

    def put_defaulted(self, received: bytes, field_validation: FieldValidation, spec: Document) -> None:
        pass

    def validated(self, inputs: SpecInputs, validate: object) -> ValidationResult:
        assert callable(validate)
        result = validate(inputs)
        assert isinstance(result, ValidationResult)
        return result


async def outcome(api_server: ApiServer, body: Document, validation: FieldValidation) -> object:
    """What is stored, or the error; and the warnings."""
    resource = api_server.resources.of_kind(POD)
    call = Call("create", POD, User("u"), 0.0, NOW, NS, field_manager="m", field_validation=validation)
    try:
        read = api_server.body_reader(resource, call, msgspec.json.encode(body), "application/json")
        made = (await create(api_server.context, resource, call, read())).document
    except StatusError as error:
        return error.code, error.message, error.details, call.warnings
    for field in ("uid", "resourceVersion"):
        del made["metadata"][field]
    return msgspec.json.encode(made), call.warnings


def outcomes(bodies: Sequence[tuple[Document, FieldValidation]], cache: SpecCache) -> list[object]:
    found: list[object] = []

    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        api_server.resources.of_kind(POD).strategy.specs = cache
        for body, validation in bodies:
            found.append(await outcome(api_server, body, validation))
            name = body["metadata"].get("name")
            await api_server.store.delete(POD.key(NS, name)) if isinstance(found[-1], tuple) and len(
                found[-1]
            ) == 2 else None

    with_api_server(scenario)
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(PODS, NAMES, NAMES, st.sampled_from([LENIENT, WARN, STRICT])), min_size=1, max_size=4))
def test_the_cache_changes_no_result(pods: list[tuple[Document, str, str, FieldValidation]]) -> None:
    bodies = [
        ({**pod, "metadata": {**pod["metadata"], "name": name}}, each)
        for pod, first, second, validation in pods
        for name in (first, second, "web")
        for each in (validation, WARN)
    ]
    assert outcomes(bodies, SpecCache()) == outcomes(bodies, NoCache())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b'{"a":1,"spec":{"b": [ 1]}}\n', (b'{"a":1,"spec":{}}', b'{"b": [ 1]}'), id="a compact body"),
        pytest.param(b'{"a":1}', None, id="no spec"),
        pytest.param(b'{"spec":null}', None, id="spec is null"),
        pytest.param(b'{"spec":{},"spec":{}}', None, id="a key twice"),
        pytest.param(b'{"spec": {}}', None, id="blanks between the parts"),
        pytest.param(b'{"spec":{}', None, id="no JSON"),
        pytest.param(b"[]", None, id="a list"),
    ],
)
def test_split_body_separates_the_spec_from_the_body(body: bytes, expected: tuple[bytes, bytes] | None) -> None:
    assert split_body(body) == expected


def test_defaulted_spec_returns_a_copy() -> None:
    cache = SpecCache()
    cache.put_defaulted(b"{}", WARN, {"a": [1]})
    first = cache.defaulted_spec(b"{}", WARN)
    assert first is not None
    first["a"].append(2)
    assert cache.defaulted_spec(b"{}", WARN) == {"a": [1]}
    assert cache.defaulted_spec(b"{}", STRICT) is None


def test_the_cache_drops_its_oldest_entries() -> None:
    cache = SpecCache(bytes_max=6 * ENTRY_BYTES)
    keys = [b'{"a":%d}' % number for number in range(4)]
    for key in keys:
        cache.put_defaulted(key, WARN, {})
    assert [cache.defaulted_spec(key, WARN) is not None for key in keys] == [False, False, True, True]


def test_only_results_of_valid_specs_are_cached() -> None:
    cache, validated_specs = SpecCache(), []

    def validate(inputs: SpecInputs) -> ValidationResult:
        validated_specs.append(inputs.spec)
        return ValidationResult(["wrong"] if inputs.spec["bad"] else (), ["unwise"])  # type: ignore[list-item]

    for bad, times in ((True, 2), (False, 1)):
        validated_specs.clear()
        for _ in range(2):
            assert cache.validated(SpecInputs({"bad": bad}, {}), validate).warnings
        assert len(validated_specs) == times
