"""A body with a known spec means what it would mean if it were read with care."""

from __future__ import annotations

import json
from copy import deepcopy
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
    for turn in ("new", "known"):
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
    ],
)
def test_what_needs_a_second_look_is_not_cast(data: bytes) -> None:
    moulds = Moulds(STRUCT, STRATEGY)
    assert moulds.cast(body()) is not None
    assert moulds.cast(data) is None


def test_whoever_gets_a_document_may_change_it() -> None:
    moulds = Moulds(STRUCT, STRATEGY)
    first = moulds.cast(body())
    assert first is not None
    before = deepcopy(first.document)
    first.document["spec"]["containers"][0]["env"].clear()
    first.document["metadata"]["labels"] = {"a": "b"}
    second = moulds.cast(body())
    assert second is not None
    assert second.document == before
    assert second.mould is first.mould
