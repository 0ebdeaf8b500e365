"""A body with a known spec means what it would mean if it were read with care."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.api.schema.tables import struct_named
from mooring.apiserver.call import FieldValidation
from mooring.apiserver.strategies.pod import PodStrategy
from mooring.apiserver.wire.decode import decode_body
from mooring.apiserver.wire.moulds import Moulds

STRUCT = struct_named("core", "Pod")
STRATEGY = PodStrategy(POD)
TIMES_UNTIL_KNOWN = 3
"""The first is noted, the second makes the mould of its sort, the third one of its own."""
SPEC: Document = {
    "containers": [
        {
            "name": "web",
            "image": "nginx:1",
            "env": [{"name": "A", "value": "ä"}, {"name": "B", "value": ""}],
            "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
            "ports": [{"containerPort": 80}],
        }
    ]
}


def body(spec: Any = SPEC, metadata: Any = None, **parts: Any) -> bytes:
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata or {"name": "p"}, "spec": spec, **parts}
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()


def read_with_care(data: bytes) -> Document:
    decoded = decode_body(data, "application/json", POD, STRUCT, FieldValidation.STRICT)
    STRATEGY.default(decoded.document)
    return decoded.document


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(body(), id="an ordinary pod"),
        pytest.param(body(metadata={"generateName": "p-", "labels": {"a": "b"}, "annotations": {}}), id="metadata"),
        pytest.param(body({**SPEC, "terminationGracePeriodSeconds": -5}), id="a negative grace period"),
        pytest.param(body({**SPEC, "hostNetwork": True, "nodeSelector": {}}), id="ports of the host"),
        pytest.param(body({**SPEC, "serviceAccount": "old", "volumes": None}), id="an old name"),
        pytest.param(
            body(metadata={"name": "p", "annotations": {"pod.alpha.kubernetes.io/init-containers": "x"}}),
            id="an annotation that goes",
        ),
        pytest.param(body(metadata={"name": "p", "creationTimestamp": None}), id="what clients of Go write"),
        pytest.param(body() + b"\n", id="a line end"),
        pytest.param(b'{"metadata":{"name":"p"},"spec":{"containers":[]}}', id="no kind and no version"),
    ],
)
def test_cast_and_read_with_care_it_is_the_same(data: bytes) -> None:
    moulds = Moulds(STRUCT, STRATEGY)
    expected = read_with_care(data)
    for turn in ("new", "made", "known", "known to the letter"):
        cast = moulds.cast(data)
        assert cast is not None, turn
        assert json.dumps(cast.document) == json.dumps(expected), turn  # the order counts, too


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(body().replace(b'"spec":', b'"spec" :'), id="blanks"),
        pytest.param(body().replace(b'"name":"web"', b'"name":"web","name":"web"'), id="a key twice in the spec"),
        pytest.param(body().replace(b'{"name":"p"}', b'{"name":"p","name":"q"}'), id="a key twice in the metadata"),
        pytest.param(body().replace(b'"kind":"Pod"', b'"kind":"Pod","kind":"Pod"'), id="a key twice at the top"),
        pytest.param(body().replace(b'"kind"', b'"Kind"'), id="a kind with another spelling"),
        pytest.param(body(kind="Secret"), id="another kind"),
        pytest.param(body(apiVersion="v2"), id="another version"),
        pytest.param(body(status={"phase": "Running"}), id="a status"),
        pytest.param(body({**SPEC, "extra": 1}), id="an unknown field of the spec"),
        pytest.param(body(metadata={"name": "p", "extra": 1}), id="an unknown field of the metadata"),
        pytest.param(body(extra=1), id="an unknown field of the pod"),
        pytest.param(body({"containers": "none"}), id="a wrong type in the spec"),
        pytest.param(body(metadata={"name": 1}), id="a wrong type in the metadata"),
        pytest.param(body(metadata=[1]), id="metadata that is none"),
        pytest.param(body({"containers": [{"resources": {"limits": {"cpu": "much"}}}]}), id="a text without meaning"),
        pytest.param(body({"containers": [{"resources": {"limits": {"cpu": 1e3}}}]}), id="a number with a fraction"),
        pytest.param(body([]), id="a spec that is none"),
        pytest.param(body(None), id="no spec"),
        pytest.param(body().replace(b"nginx", b"\\u006eginx"), id="an escape that is not needed"),
        pytest.param(body({"containers": [{"name": "c"}] * 200}), id="many brackets"),
        pytest.param(body({"containers": [{"name": "c" * 70_000}]}), id="a long one"),
        pytest.param(body().replace(b'"nginx:1"', b"\x00"), id="a hole"),
    ],
)
def test_what_needs_a_second_look_is_not_cast(data: bytes) -> None:
    moulds = Moulds(STRUCT, STRATEGY)
    for _ in range(TIMES_UNTIL_KNOWN):
        assert moulds.cast(body()) is not None
        assert moulds.cast(data) is None


def test_whoever_gets_a_document_may_change_it() -> None:
    moulds = Moulds(STRUCT, STRATEGY)
    expected = read_with_care(body())
    for _ in range(TIMES_UNTIL_KNOWN + 1):
        cast = moulds.cast(body())
        assert cast is not None
        assert cast.document == expected
        cast.document["spec"]["containers"][0]["env"].clear()
        cast.document["metadata"]["labels"] = {"a": "b"}


def numbered(number: int) -> bytes:
    """One of many that differ in free texts alone, which stand in another order than that of their type."""
    container = {
        "env": [{"name": "A", "value": f"a{number}"}, {"name": "B", "value": "same"}],
        "args": ["--number", str(number)],
        "name": "web",
    }
    first = {"name": "first", "image": f"nginx:{number}"}
    return body({"initContainers": [first], "containers": [container]})


def test_specs_that_differ_in_free_texts_have_one_mould() -> None:
    moulds = Moulds(STRUCT, STRATEGY)
    casts = [moulds.cast(numbered(number)) for number in range(4)]
    for number, cast in enumerate(casts):
        assert cast is not None
        assert json.dumps(cast.document) == json.dumps(read_with_care(numbered(number)))
    assert len({id(cast.mould) for cast in casts[1:] if cast is not None}) == 1


def test_a_spec_has_a_mould_of_its_own_when_it_comes_again() -> None:
    moulds = Moulds(STRUCT, STRATEGY)
    for number in range(2):
        moulds.cast(numbered(number))
    known = [moulds.cast(numbered(2)) for _ in range(3)]
    assert [cast is not None and cast.mould is not None and cast.mould.is_of_one for cast in known] == [
        False,
        True,
        True,
    ]
    assert known[1] is not None
    assert known[2] is not None
    assert known[1].mould is known[2].mould
    assert known[2].document == read_with_care(numbered(2))
