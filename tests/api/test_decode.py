"""From JSON to views: by kind, in lists, with nulls, and the errors."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from mooring.api import decode as decode_module
from mooring.api.caches import BoundedCache
from mooring.api.decode import (
    KINDS,
    JsonBytes,
    convert,
    convert_all,
    convert_as,
    decode,
    decode_as,
    view_of,
)
from mooring.api.errors import DecodeError, UnknownKindError
from mooring.api.views.meta import ApiObject, LabelSelector, ObjectWithRaw
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import PodDisruptionBudget

POD: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "labels": {"app": "web"}},
    "spec": {"nodeName": "n1", "unheardOf": {"deep": [1, 2]}},
}
NODE: dict[str, object] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def pod_with(**spec: object) -> dict[str, object]:
    return POD | {"spec": spec}


@pytest.mark.parametrize("wrap", [bytes, memoryview, msgspec.Raw], ids=["bytes", "memoryview", "raw"])
def test_an_object_is_decoded_from_all_types_of_bytes(wrap: Callable[[bytes], JsonBytes]) -> None:
    view = decode(wrap(as_json(POD)))
    assert isinstance(view, Pod)
    assert view.key == "default/p"
    assert view.spec.node_name == "n1"
    assert view == convert(POD) == decode_as(Pod, wrap(as_json(POD)))


@pytest.mark.parametrize("view", KINDS, ids=lambda view: view.kind)
def test_every_kind_can_be_decoded(view: type[ApiObject]) -> None:
    bare = {"apiVersion": view.api_version, "kind": view.kind, "metadata": {"name": "x"}}
    assert view_of(view.api_version, view.kind) is view
    assert type(decode(as_json(bare))) is view
    decoded = decode(as_json(bare))
    assert decoded.key == "x"
    if isinstance(decoded, ObjectWithRaw):
        assert decoded.raw == as_json(bare)
        decoded = replace(decoded, raw=b"")
    assert convert(bare) == decoded


def test_no_kind_is_in_the_table_twice() -> None:
    assert len({(view.api_version, view.kind) for view in KINDS}) == len(KINDS)


def test_a_part_of_an_object_can_be_converted() -> None:
    read = LabelSelector(match_labels={"a": "b"})
    assert convert_as(LabelSelector, {"matchLabels": {"a": "b"}}) == read
    assert decode_as(LabelSelector, b'{"matchLabels": {"a": "b"}}') == read


@pytest.mark.parametrize(
    ("api_version", "kind", "text"),
    [
        ("v1", "Nonsense", 'no kind "Nonsense" is registered for version "v1"'),
        ("v2", "Pod", 'no kind "Pod" is registered for version "v2"; it is known in "v1"'),
        ("", "Pod", 'no kind "Pod" is registered for version ""; it is known in "v1"'),
    ],
)
def test_an_unknown_kind_is_rejected(api_version: str, kind: str, text: str) -> None:
    unknown = {"apiVersion": api_version, "kind": kind}
    for read in (convert, convert_all):
        with pytest.raises(UnknownKindError) as raised:
            read(unknown)
        assert str(raised.value) == text
    with pytest.raises(UnknownKindError) as raised:
        decode(as_json(unknown))
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("faulty", "text"),
    [
        (pod_with(nodeName=3), 'Pod "default/p": spec.nodeName: expected a string, found 3'),
        (pod_with(priority="high"), 'Pod "default/p": spec.priority: expected an integer, found "high"'),
        (pod_with(priority=1.5), 'Pod "default/p": spec.priority: expected an integer, found 1.5'),
        (pod_with(hostNetwork="yes"), 'Pod "default/p": spec.hostNetwork: expected true or false, found "yes"'),
        (pod_with(tolerations={}), 'Pod "default/p": spec.tolerations: expected a list, found an object'),
        (pod_with(affinity=[]), 'Pod "default/p": spec.affinity: expected an object, found a list'),
        (pod_with(nodeName=True), 'Pod "default/p": spec.nodeName: expected a string, found true'),
        (
            pod_with(containers=[{}, {"ports": [{"hostPort": "x" * 50}]}]),
            f'Pod "default/p": spec.containers[1].ports[0].hostPort: expected an integer, found "{"x" * 37}..."',
        ),
        (
            pod_with(containers=[{"resources": {"requests": {"memory": "1Gi", "cpu": {"value": 1}}}}]),
            'Pod "default/p": spec.containers[0].resources.requests["cpu"]: '
            "expected an integer or a number or a string, found an object",
        ),
        (
            POD | {"metadata": {"name": "p", "labels": {"good": "yes", "bad": 1}}},
            'Pod "p": metadata.labels["bad"]: expected a string, found 1',
        ),
        (
            POD | {"metadata": {"name": "p", "annotations": {"absent": None, "bad": [1]}}},
            'Pod "p": metadata.annotations["bad"]: expected a string, found a list',
        ),
        (
            pod_with(priority=2**31),
            'Pod "default/p": spec.priority: expected an integer <= 2147483647, found 2147483648',
        ),
        (
            pod_with(tolerations=[{"tolerationSeconds": -(10**30)}]),
            f'Pod "default/p": spec.tolerations[0].tolerationSeconds: '
            f"expected an integer >= -9223372036854775808, found -{10**30}",
        ),
        (POD | {"metadata": []}, "Pod: metadata: expected an object, found a list"),
        (pod_with(tolerations=[None]), 'Pod "default/p": spec.tolerations[0]: expected an object, found null'),
    ],
)
def test_decode_errors_name_the_expected_type(faulty: dict[str, object], text: str) -> None:
    with pytest.raises(DecodeError) as error_of_bytes:
        decode(as_json(faulty))
    with pytest.raises(DecodeError) as error_of_dictionary:
        convert(faulty)
    assert str(error_of_bytes.value) == str(error_of_dictionary.value) == text


def test_a_decode_error_has_kind_name_path_and_problem() -> None:
    with pytest.raises(DecodeError) as raised:
        convert(pod_with(nodeName=3))
    error = raised.value
    assert (error.kind, error.name, error.path) == ("Pod", "default/p", "spec.nodeName")
    assert error.problem == "expected a string, found 3"


def test_unknown_messages_of_the_decoder_are_kept() -> None:
    assert str(decode_module._explain("Pod", POD, "Ran out of ink")) == 'Pod "default/p": Ran out of ink'


def test_a_key_that_is_no_text_is_an_error() -> None:
    with pytest.raises(DecodeError, match=r"metadata.labels: expected a string, found a key that is an integer"):
        convert(POD | {"metadata": {"labels": {1: "x"}}})


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "object: expected JSON: Input data was truncated"),
        (b'{"kind": "Pod"', "object: expected JSON: Input data was truncated"),
        (b"kind: Pod", "object: expected JSON: JSON is malformed: invalid character (byte 0)"),
        (b"[]", "object: expected an object, found a list"),
        (b"{}", "object: kind: expected the object's kind, found nothing"),
        (b'{"kind": ""}', "object: kind: expected the object's kind, found nothing"),
        (b'{"kind": 3}', "object: kind: expected a string, found 3"),
        (b'{"kind": "Pod", "apiVersion": 1}', "object: apiVersion: expected a string, found 1"),
    ],
)
def test_values_that_are_no_object_are_rejected(raw: bytes, text: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decode(raw)
    assert str(raised.value) == text


def test_bytes_that_are_no_text_are_rejected() -> None:
    raw = as_json(pod_with(nodeName="?")).replace(b"?", b"\xff")
    with pytest.raises(DecodeError, match=r"^Pod: expected JSON"):
        decode(raw)
    with pytest.raises(DecodeError, match=r"^Pod: expected JSON: JSON is malformed"):
        decode_as(Pod, b"{]")


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeName": None},
        {"containers": None, "nodeSelector": None},
        {"containers": [{"name": None, "resources": None}]},
        {"affinity": {"nodeAffinity": None}, "overhead": None},
    ],
    ids=["text", "list and map", "deep in a list", "part"],
)
def test_null_means_absent(spec: dict[str, object]) -> None:
    without = json.loads(as_json(spec), object_hook=lambda entry: {k: v for k, v in entry.items() if v is not None})
    expected = convert(pod_with(**without))
    assert decode(as_json(pod_with(**spec))) == expected
    assert convert(pod_with(**spec)) == expected


@pytest.mark.parametrize(
    ("document", "kinds"),
    [
        (POD, [Pod]),
        ({"apiVersion": "v1", "kind": "List", "items": [POD, NODE]}, [Pod, Node]),
        ({"apiVersion": "v1", "kind": "List", "items": []}, []),
        ({"apiVersion": "v1", "kind": "List"}, []),
        ({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}, POD]}, [Pod, Pod]),
        ({"apiVersion": "policy/v1", "kind": "PodDisruptionBudgetList", "items": [{}]}, [PodDisruptionBudget]),
        (
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": [{"apiVersion": "v1", "kind": "NodeList", "items": [{}]}, POD],
            },
            [Node, Pod],
        ),
    ],
    ids=["single", "mixed", "empty", "no items", "of pods", "of budgets", "nested"],
)
def test_lists_are_flattened(document: dict[str, object], kinds: list[type[ApiObject]]) -> None:
    assert [type(view) for view in convert_all(document)] == kinds


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"apiVersion": "v1", "kind": "List", "items": {}}, "List: items: expected a list, found an object"),
        ({"apiVersion": "v1", "kind": "List", "items": [3]}, "List: items[0]: expected an object, found 3"),
        (
            {"apiVersion": "v1", "kind": "NonsenseList", "items": [{}]},
            'no kind "Nonsense" is registered for version "v1"',
        ),
        (
            {"apiVersion": "v1", "kind": "List", "items": [{"metadata": {"name": "a"}}]},
            'object "a": kind: expected the object\'s kind, found nothing',
        ),
    ],
)
def test_invalid_lists_are_rejected(document: dict[str, object], text: str) -> None:
    with pytest.raises(DecodeError) as raised:
        convert_all(document)
    assert str(raised.value) == text


# --- The bounded memory ----------------------------------------------------------------------------------------------


def test_a_bounded_cache_returns_what_was_put() -> None:
    memory: BoundedCache[str, int] = BoundedCache(2)
    assert memory.get("one") is None
    assert memory.put("one", 1) == 1
    assert memory.get("one") == 1


def test_a_full_bounded_cache_is_cleared() -> None:
    memory: BoundedCache[int, int] = BoundedCache(3)
    for number in range(4):
        memory.put(number, number)
    assert dict(memory) == {3: 3}
