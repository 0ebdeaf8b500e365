"""One extender: whom it is asked about, and what its answers mean."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import Container, Pod, ResourceRequirements
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders.extender import Extender, ExtenderFailure, Narrowed, extenders_of
from mooring.scheduler.extenders.wire import FilterResult, HostPriority
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
def test_who_is_of_interest(managed: list[str], asking: Pod, is_interested: bool) -> None:
    resources = [{"name": name} for name in managed]
    asked = extender(filterVerb="filter", managedResources=resources)
    assert asked.is_interested(engine_of().record(asking)) is is_interested


@pytest.mark.parametrize(
    ("prefix", "url"),
    [("http://a", "http://a/filter"), ("http://a/", "http://a/filter"), ("https://a:1/b//", "https://a:1/b/filter")],
)
def test_where_it_is_asked(prefix: str, url: str) -> None:
    assert extender(prefix, filterVerb="filter").url("filter") == url


BY_NAME, WHOLE = extender(filterVerb="f", nodeCacheCapable=True), extender(filterVerb="f")


@pytest.mark.parametrize(
    ("asked", "result", "narrowed"),
    [
        pytest.param(BY_NAME, only("n2", "n1"), Narrowed(("n2", "n1"), {}), id="names, in its own order"),
        pytest.param(BY_NAME, only("n1", "n1"), Narrowed(("n1",), {}), id="a name twice is one node"),
        pytest.param(BY_NAME, only(), Narrowed((), {}), id="none is left"),
        pytest.param(BY_NAME, FilterResult(), Narrowed((), {}), id="no answer is none"),
        pytest.param(BY_NAME, FilterResult(nodes=("n1",)), Narrowed(("n1",), {}), id="whole nodes instead of names"),
        pytest.param(WHOLE, FilterResult(nodes=("n1",)), Narrowed(("n1",), {}), id="whole nodes"),
        pytest.param(WHOLE, only("n1"), Narrowed((), {}), id="names from one that was sent nodes are not read"),
        pytest.param(
            BY_NAME,
            only("n1", failed={"n2": "full", "n3": "odd"}, for_good={"n3": "never"}),
            Narrowed(
                ("n1",),
                {
                    "n2": Status(Code.UNSCHEDULABLE, ("full",)),
                    "n3": Status(Code.UNRESOLVABLE, ("never",)),
                },
            ),
            id="reasons, of which the severe one is told",
        ),
        pytest.param(BY_NAME, FilterResult(("n1",), error="boom"), ExtenderFailure("boom"), id="an error"),
        pytest.param(
            BY_NAME,
            only("n1", "n9"),
            ExtenderFailure(
                'extender "http://extender.test" claims a filtered node "n9" which is not found in the input node list'
            ),
            id="a node that nobody asked about",
        ),
    ],
)
def test_what_is_left(asked: Extender, result: FilterResult, narrowed: Narrowed | ExtenderFailure) -> None:
    assert asked.narrowed(("n1", "n2", "n3"), result) == narrowed


@pytest.mark.parametrize(
    ("weight", "priorities", "scores"),
    [
        pytest.param(1, [("a", 10), ("b", 0)], {"a": 100, "b": 0}, id="ten of ten is a hundred"),
        pytest.param(3, [("a", 5)], {"a": 150}, id="times its weight"),
        pytest.param(1, [("a", 5), ("a", 2)], {"a": 70}, id="twice adds up"),
        pytest.param(1, [("a", -4), ("b", 99)], {"a": -40, "b": 990}, id="out of range is not refused"),
        pytest.param(1, [("a", 2**62)], {"a": (2**62 * 10 + 2**63) % 2**64 - 2**63}, id="in 64 bits"),
    ],
)
def test_what_it_adds_to_scores(weight: int, priorities: list[tuple[str, int]], scores: dict[str, int]) -> None:
    asked = extender(prioritizeVerb="p", weight=weight)
    assert asked.scores(HostPriority(*each) for each in priorities) == scores


def test_those_that_may_fail_are_asked_last() -> None:
    extenders = [
        written("http://a", filterVerb="f", ignorable=True),
        written("http://b", filterVerb="f"),
        written("http://c", filterVerb="f", ignorable=True),
        written("http://d", filterVerb="f"),
    ]
    asked = extenders_of(load_configuration(configuration(extenders=extenders)))
    assert [each.name for each in asked] == ["http://b", "http://d", "http://a", "http://c"]


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
