"""One extender: messages, interest in pods, filter results, scores, order."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec import Raw

from mooring.api.views.pod import Container, Pod, ResourceRequirements
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders.extender import (
    Extender,
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderFailure,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    FilteredNodes,
    HostPriority,
    InvalidResponseError,
    MetaPod,
    NodeList,
    SentMetaVictims,
    SentVictims,
    encode,
    extenders_of,
    read_binding_result,
    read_filter_result,
    read_host_priorities,
    read_preemption_result,
)
from mooring.scheduler.framework.status import Code, Status
from tests.builders import node, pod
from tests.scheduler.config.builders import Written, configuration
from tests.scheduler.extenders.builders import extender, only, written
from tests.scheduler.harness import decide, engine_of

GPU = "example.com/gpu"


def limited(**limits: int) -> Container:
    return Container(name="c", resources=ResourceRequirements(limits={GPU: 1} if limits else {}))


@pytest.mark.parametrize(
    ("managed", "asking", "is_interested"),
    [
        pytest.param([], pod(), True, id="manages nothing: everybody"),
        pytest.param([GPU], pod(), False, id="a pod without it"),
        pytest.param([GPU], pod(others={GPU: 1}), True, id="a pod that requests it"),
        pytest.param([GPU], pod(containers=[limited(gpu=1)]), True, id="limits it"),
        pytest.param([GPU], pod(init=[limited(gpu=1)]), True, id="needs it to start"),
        pytest.param(["example.com/other"], pod(others={GPU: 1}), False, id="another resource"),
    ],
)
def test_which_pods_interest_an_extender(managed: list[str], asking: Pod, is_interested: bool) -> None:
    resources = [{"name": name} for name in managed]
    asked = extender(filterVerb="filter", managedResources=resources)
    assert asked.is_interested(engine_of().record(asking)) is is_interested


@pytest.mark.parametrize(
    ("prefix", "url"),
    [("http://a", "http://a/filter"), ("http://a/", "http://a/filter"), ("https://a:1/b//", "https://a:1/b/filter")],
)
def test_the_url_of_a_request(prefix: str, url: str) -> None:
    assert extender(prefix, filterVerb="filter").url("filter") == url


BY_NAME, WHOLE = extender(filterVerb="f", nodeCacheCapable=True), extender(filterVerb="f")


@pytest.mark.parametrize(
    ("asked", "result", "filtered"),
    [
        pytest.param(BY_NAME, only("n2", "n1"), FilteredNodes(("n2", "n1"), {}), id="names, in its own order"),
        pytest.param(BY_NAME, only("n1", "n1"), FilteredNodes(("n1",), {}), id="a name twice is one node"),
        pytest.param(BY_NAME, only(), FilteredNodes((), {}), id="none is left"),
        pytest.param(BY_NAME, ExtenderFilterResult(), FilteredNodes((), {}), id="no answer is none"),
        pytest.param(
            BY_NAME, ExtenderFilterResult(nodes=("n1",)), FilteredNodes(("n1",), {}), id="whole nodes instead of names"
        ),
        pytest.param(WHOLE, ExtenderFilterResult(nodes=("n1",)), FilteredNodes(("n1",), {}), id="whole nodes"),
        pytest.param(WHOLE, only("n1"), FilteredNodes((), {}), id="names from one that was sent nodes are not read"),
        pytest.param(
            BY_NAME,
            only("n1", failed={"n2": "full", "n3": "odd"}, for_good={"n3": "never"}),
            FilteredNodes(
                ("n1",),
                {
                    "n2": Status(Code.UNSCHEDULABLE, ("full",)),
                    "n3": Status(Code.UNRESOLVABLE, ("never",)),
                },
            ),
            id="reasons, of which the severe one is reported",
        ),
        pytest.param(BY_NAME, ExtenderFilterResult(("n1",), error="boom"), ExtenderFailure("boom"), id="an error"),
        pytest.param(
            BY_NAME,
            only("n1", "n9"),
            ExtenderFailure(
                'extender "http://extender.test" claims a filtered node "n9" which is not found in the input node list'
            ),
            id="a node that was not in the request",
        ),
    ],
)
def test_what_is_left(asked: Extender, result: ExtenderFilterResult, filtered: FilteredNodes | ExtenderFailure) -> None:
    assert asked.filtered(("n1", "n2", "n3"), result) == filtered


@pytest.mark.parametrize(
    ("weight", "priorities", "scores"),
    [
        pytest.param(1, [("a", 10), ("b", 0)], {"a": 100, "b": 0}, id="ten of ten is a hundred"),
        pytest.param(3, [("a", 5)], {"a": 150}, id="times its weight"),
        pytest.param(1, [("a", 5), ("a", 2)], {"a": 70}, id="twice adds up"),
        pytest.param(1, [("a", -4), ("b", 99)], {"a": -40, "b": 990}, id="out of range is not rejected"),
        pytest.param(1, [("a", 2**62)], {"a": (2**62 * 10 + 2**63) % 2**64 - 2**63}, id="in 64 bits"),
    ],
)
def test_what_it_adds_to_scores(weight: int, priorities: list[tuple[str, int]], scores: dict[str, int]) -> None:
    asked = extender(prioritizeVerb="p", weight=weight)
    assert asked.scores(HostPriority(*priority) for priority in priorities) == scores


def test_ignorable_extenders_are_called_last() -> None:
    extenders = [
        written("http://a", filterVerb="f", ignorable=True),
        written("http://b", filterVerb="f"),
        written("http://c", filterVerb="f", ignorable=True),
        written("http://d", filterVerb="f"),
    ]
    asked = extenders_of(load_configuration(configuration(extenders=extenders)))
    assert [extender.name for extender in asked] == ["http://b", "http://d", "http://a", "http://c"]


# Resources in an extender's hands


def managing(*resources: Written, **fields: object) -> Engine:
    extenders = [written(filterVerb="f", managedResources=list(resources))]
    return engine_of(node("n1", others={"example.com/b": 1}), config=configuration(extenders=extenders, **fields))


@pytest.mark.parametrize(
    ("engine", "request_", "is_placed"),
    [
        pytest.param(managing({"name": GPU}), GPU, False, id="managed, but counted by us"),
        pytest.param(managing({"name": GPU, "ignoredByScheduler": True}), GPU, True, id="not counted by us"),
        pytest.param(managing({"name": GPU, "ignoredByScheduler": True}), "example.com/a", False, id="another"),
    ],
)
def test_resources_that_are_ignored(engine: Engine, request_: str, is_placed: bool) -> None:
    assert decide(engine, pod(others={request_: 1})).is_placed is is_placed


def test_what_extenders_manage_replaces_what_arguments_ignore() -> None:
    arguments = [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/a"]}}]
    engine = managing(
        {"name": GPU, "ignoredByScheduler": True},
        profiles=[{"schedulerName": "x", "pluginConfig": arguments}, {"schedulerName": "y"}],
    )
    for name in ("x", "y"):
        assert decide(engine, pod(others={GPU: 1}, scheduler=name)).is_placed
        assert not decide(engine, pod(others={"example.com/a": 1}, scheduler=name)).is_placed


POD = Raw(b'{"metadata":{"name":"p"},"unknown":true}')


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        pytest.param(
            ExtenderArgs(POD, None, ["n1", "n2"]),
            b'{"Pod":{"metadata":{"name":"p"},"unknown":true},"Nodes":null,"NodeNames":["n1","n2"]}',
            id="nodes by name",
        ),
        pytest.param(
            ExtenderArgs(POD, NodeList([Raw(b'{"a":1}')]), None),
            b'{"Pod":{"metadata":{"name":"p"},"unknown":true},"Nodes":{"items":[{"a":1}],"metadata":{}},'
            b'"NodeNames":null}',
            id="whole nodes, with every field",
        ),
        pytest.param(
            ExtenderPreemptionArgs(
                POD, None, {"n2": SentMetaVictims([], 0), "n1": SentMetaVictims([MetaPod("u1")], 2)}
            ),
            b'{"Pod":{"metadata":{"name":"p"},"unknown":true},"NodeNameToVictims":null,"NodeNameToMetaVictims":'
            b'{"n1":{"Pods":[{"UID":"u1"}],"NumPDBViolations":2},"n2":{"Pods":[],"NumPDBViolations":0}}}',
            id="victims by uid, nodes in the order of their names",
        ),
        pytest.param(
            ExtenderPreemptionArgs(POD, {"n1": SentVictims([Raw(b'{"b":2}')], 1)}, None),
            b'{"Pod":{"metadata":{"name":"p"},"unknown":true},"NodeNameToVictims":{"n1":{"Pods":[{"b":2}],'
            b'"NumPDBViolations":1}},"NodeNameToMetaVictims":null}',
            id="whole victims",
        ),
        pytest.param(
            ExtenderBindingArgs("p", "default", "u1", "n1"),
            b'{"PodName":"p","PodNamespace":"default","PodUID":"u1","Node":"n1"}',
            id="a binding",
        ),
    ],
)
def test_what_is_sent(message: msgspec.Struct, sent: bytes) -> None:
    assert encode(message) == sent


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        pytest.param(b"{}", ExtenderFilterResult(), id="nothing"),
        pytest.param(b"null", ExtenderFilterResult(), id="null"),
        pytest.param(
            b'{"NodeNames":["n1"],"Nodes":null,"FailedNodes":{"n2":"no"},"FailedAndUnresolvableNodes":{"n3":"never"},'
            b'"Error":""}',
            ExtenderFilterResult(("n1",), None, {"n2": "no"}, {"n3": "never"}),
            id="names",
        ),
        pytest.param(
            b'{"nodenames":[],"failedNodes":{"N2":"No"},"error":"boom"}',
            ExtenderFilterResult((), None, {"N2": "No"}, {}, "boom"),
            id="the case of fields does not matter, that of names does",
        ),
        pytest.param(
            b'{"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n1"},"spec":{}},{"Metadata":{"Name":"n2"}}]}}',
            ExtenderFilterResult(None, ("n1", "n2")),
            id="whole nodes",
        ),
        pytest.param(b'{"Nodes":{"items":null}}', ExtenderFilterResult(None, ()), id="a list of no nodes"),
        pytest.param(
            b'{"Nodes":{"items":[{}]},"more":1}', ExtenderFilterResult(None, ("",)), id="a node without a name"
        ),
    ],
)
def test_what_comes_back_from_filtering(raw: bytes, result: ExtenderFilterResult) -> None:
    assert read_filter_result(raw) == result


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
    assert read_host_priorities(raw) == priorities


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
    assert read_preemption_result(raw).victims == victims


@pytest.mark.parametrize(("raw", "error"), [(b"{}", ""), (b'{"Error":"no"}', "no"), (b'{"error":"no"}', "no")])
def test_what_comes_back_from_binding(raw: bytes, error: str) -> None:
    assert read_binding_result(raw).error == error


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        pytest.param(read_filter_result, b"", id="nothing at all"),
        pytest.param(read_filter_result, b"<html>", id="a web page"),
        pytest.param(read_filter_result, b"[]", id="a list for an object"),
        pytest.param(read_filter_result, b'{"NodeNames":"n1"}', id="a text for a list"),
        pytest.param(read_filter_result, b'{"NodeNames":[1]}', id="a number for a name"),
        pytest.param(read_filter_result, b'{"FailedNodes":["n1"]}', id="a list for a map"),
        pytest.param(read_host_priorities, b"{}", id="an object for a list"),
        pytest.param(read_host_priorities, b'[{"Host":"n1","Score":"5"}]', id="a text for a score"),
        pytest.param(read_preemption_result, b'{"NodeNameToMetaVictims":{"n1":{"Pods":["u1"]}}}', id="bare uids"),
        pytest.param(read_binding_result, b'{"Error":{}}', id="an object for a text"),
        pytest.param(read_filter_result, b'{"Nodes":' * 200_000, id="an object nested too deeply"),
        pytest.param(read_host_priorities, b"[" * 200_000, id="a list nested too deeply"),
    ],
)
def test_what_cannot_be_read(read: Callable[[bytes], object], raw: bytes) -> None:
    with pytest.raises(InvalidResponseError):
        read(raw)
