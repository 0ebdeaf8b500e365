"""The messages to and from extenders, to the letter."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec import Raw

from mooring.scheduler.extenders import wire

POD = Raw(b'{"metadata":{"name":"p"},"unknown":true}')


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        pytest.param(
            wire.ExtenderArgs(POD, None, ["n1", "n2"]),
            b'{"Pod":{"metadata":{"name":"p"},"unknown":true},"Nodes":null,"NodeNames":["n1","n2"]}',
            id="nodes by name",
        ),
        pytest.param(
            wire.ExtenderArgs(POD, wire.NodeList([Raw(b'{"a":1}')]), None),
            b'{"Pod":{"metadata":{"name":"p"},"unknown":true},"Nodes":{"items":[{"a":1}],"metadata":{}},'
            b'"NodeNames":null}',
            id="whole nodes, with every field",
        ),
        pytest.param(
            wire.ExtenderPreemptionArgs(
                POD, None, {"n2": wire.SentMetaVictims([], 0), "n1": wire.SentMetaVictims([wire.MetaPod("u1")], 2)}
            ),
            b'{"Pod":{"metadata":{"name":"p"},"unknown":true},"NodeNameToVictims":null,"NodeNameToMetaVictims":'
            b'{"n1":{"Pods":[{"UID":"u1"}],"NumPDBViolations":2},"n2":{"Pods":[],"NumPDBViolations":0}}}',
            id="victims by uid, nodes in the order of their names",
        ),
        pytest.param(
            wire.ExtenderPreemptionArgs(POD, {"n1": wire.SentVictims([Raw(b'{"b":2}')], 1)}, None),
            b'{"Pod":{"metadata":{"name":"p"},"unknown":true},"NodeNameToVictims":{"n1":{"Pods":[{"b":2}],'
            b'"NumPDBViolations":1}},"NodeNameToMetaVictims":null}',
            id="whole victims",
        ),
        pytest.param(
            wire.ExtenderBindingArgs("p", "default", "u1", "n1"),
            b'{"PodName":"p","PodNamespace":"default","PodUID":"u1","Node":"n1"}',
            id="a binding",
        ),
    ],
)
def test_what_is_sent(message: msgspec.Struct, sent: bytes) -> None:
    assert wire.encode(message) == sent


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        pytest.param(b"{}", wire.FilterResult(), id="nothing"),
        pytest.param(b"null", wire.FilterResult(), id="null"),
        pytest.param(
            b'{"NodeNames":["n1"],"Nodes":null,"FailedNodes":{"n2":"no"},"FailedAndUnresolvableNodes":{"n3":"never"},'
            b'"Error":""}',
            wire.FilterResult(("n1",), None, {"n2": "no"}, {"n3": "never"}),
            id="names",
        ),
        pytest.param(
            b'{"nodenames":[],"failedNodes":{"N2":"No"},"error":"boom"}',
            wire.FilterResult((), None, {"N2": "No"}, {}, "boom"),
            id="the case of fields does not matter, that of names does",
        ),
        pytest.param(
            b'{"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n1"},"spec":{}},{"Metadata":{"Name":"n2"}}]}}',
            wire.FilterResult(None, ("n1", "n2")),
            id="whole nodes",
        ),
        pytest.param(b'{"Nodes":{"items":null}}', wire.FilterResult(None, ()), id="a list of no nodes"),
        pytest.param(b'{"Nodes":{"items":[{}]},"more":1}', wire.FilterResult(None, ("",)), id="a node without a name"),
    ],
)
def test_what_comes_back_from_filtering(raw: bytes, result: wire.FilterResult) -> None:
    assert wire.read_filter_result(raw) == result


@pytest.mark.parametrize(
    ("raw", "priorities"),
    [
        pytest.param(b"[]", (), id="none"),
        pytest.param(b"null", (), id="null"),
        pytest.param(
            b'[{"Host":"n1","Score":5},{"host":"n2","score":-3},{"Host":"n3"},{}]',
            (("n1", 5), ("n2", -3), ("n3", 0), ("", 0)),
            id="some",
        ),
    ],
)
def test_what_comes_back_from_prioritizing(raw: bytes, priorities: tuple[tuple[str, int], ...]) -> None:
    assert wire.read_host_priorities(raw) == priorities


@pytest.mark.parametrize(
    ("raw", "victims"),
    [
        pytest.param(b"{}", {}, id="none"),
        pytest.param(
            b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u1"},{"uid":"u2"}],"NumPDBViolations":1},"n2":null}}',
            {"n1": (("u1", "u2"), 1), "n2": ((), 0)},
            id="some",
        ),
    ],
)
def test_what_comes_back_from_preempting(raw: bytes, victims: dict[str, tuple[tuple[str, ...], int]]) -> None:
    assert wire.read_preemption_result(raw).victims == victims


@pytest.mark.parametrize(("raw", "error"), [(b"{}", ""), (b'{"Error":"no"}', "no"), (b'{"error":"no"}', "no")])
def test_what_comes_back_from_binding(raw: bytes, error: str) -> None:
    assert wire.read_binding_result(raw).error == error


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        pytest.param(wire.read_filter_result, b"", id="nothing at all"),
        pytest.param(wire.read_filter_result, b"<html>", id="a web page"),
        pytest.param(wire.read_filter_result, b"[]", id="a list for an object"),
        pytest.param(wire.read_filter_result, b'{"NodeNames":"n1"}', id="a text for a list"),
        pytest.param(wire.read_filter_result, b'{"NodeNames":[1]}', id="a number for a name"),
        pytest.param(wire.read_filter_result, b'{"FailedNodes":["n1"]}', id="a list for a map"),
        pytest.param(wire.read_host_priorities, b"{}", id="an object for a list"),
        pytest.param(wire.read_host_priorities, b'[{"Host":"n1","Score":"5"}]', id="a text for a score"),
        pytest.param(wire.read_preemption_result, b'{"NodeNameToMetaVictims":{"n1":{"Pods":["u1"]}}}', id="bare uids"),
        pytest.param(wire.read_binding_result, b'{"Error":{}}', id="an object for a text"),
    ],
)
def test_what_cannot_be_read(read: Callable[[bytes], object], raw: bytes) -> None:
    with pytest.raises(wire.UnreadableAnswerError):
        read(raw)
