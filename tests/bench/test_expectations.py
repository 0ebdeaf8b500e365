"""Expectations of workloads: correct clusters pass, and each violation is reported."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.expectations import (
    Apart,
    Evidence,
    Expectation,
    Feasible,
    Follows,
    Message,
    Skew,
    Together,
    VictimsEach,
    Within,
    problems,
)
from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine

ZONES = {"n1": "a", "n2": "a", "n3": "b"}


def evidence(
    *placements: tuple[str, str],
    messages: Sequence[str] = (),
    victims: Sequence[int] = (),
    feasible: Sequence[int] = (),
    spec: dict[str, object] | None = None,
    taints: Sequence[dict[str, str]] = (),
    cpu: str = "100m",
) -> Evidence:
    """A cluster of three nodes in two zones, with pods: (colour, node), …"""
    engine = Engine(load_configuration(None), entropy=Entropy(1))
    for name, zone in ZONES.items():
        engine.put(node(name, zone, taints))
    pods = []
    for number, (colour, node_name) in enumerate(placements):
        record = engine.record(pod(f"p{number}", colour, cpu, spec or {}))
        engine.assume(Decision(record, node_name=node_name))
        pods.append(record)
    return Evidence(engine, pods, messages, victims, feasible)


def node(name: str, zone: str, taints: Sequence[dict[str, str]]) -> Node:
    return convert_as(
        Node,
        {
            "metadata": {"name": name, "labels": {"zone": zone, "host": name}},
            "spec": {"taints": list(taints)},
            "status": {"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "10"}},
        },
    )


def pod(name: str, colour: str, cpu: str, spec: dict[str, object]) -> Pod:
    return convert_as(
        Pod,
        {
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": name,
                "labels": {"colour": colour},
                "annotations": {"wants": "a"},
            },
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec},
        },
    )


RED_APART = evidence(("red", "n1"), ("red", "n2"), ("blue", "n1"))
RED_CROWDED = evidence(("red", "n1"), ("red", "n1"))


@pytest.mark.parametrize(
    ("expectation", "seen"),
    [
        pytest.param(Apart("colour", "host"), RED_APART, id="one of a kind on each node is apart"),
        pytest.param(Apart("colour", "zone", at_most=2), RED_APART, id="two of a kind in a zone, where two may be"),
        pytest.param(Together("colour", "zone"), RED_APART, id="two nodes of a zone are together in the zone"),
        pytest.param(Skew("colour", "zone", 2), RED_CROWDED, id="two and none are skewed by two"),
        pytest.param(Within("zone", ("a",)), RED_APART, id="all pods are in the zone"),
        pytest.param(Follows("wants", "zone"), RED_APART, id="pods are in the zone that their annotation names"),
        pytest.param(Feasible(1.0), evidence(feasible=[3, 3]), id="all nodes were to choose from"),
        pytest.param(VictimsEach(3), evidence(victims=[3, 3]), id="each evicted three"),
        pytest.param(Message("0/{nodes}: no"), evidence(messages=["0/3: no"]), id="the text is as expected"),
    ],
)
def test_as_it_must_be(expectation: Expectation, seen: Evidence) -> None:
    assert problems([expectation], seen) == []


@pytest.mark.parametrize(
    ("expectation", "seen", "problem"),
    [
        pytest.param(
            Apart("colour", "host"), RED_CROWDED, "colour=red: 1 domains of host hold more than 1", id="apart"
        ),
        pytest.param(Together("colour", "host"), RED_APART, "colour=red is in 2 domains", id="together"),
        pytest.param(
            Together("colour", "host", 1, pods_per_domain_min=2.0),
            RED_APART,
            "expected at most 1",
            id="together by number",
        ),
        pytest.param(Skew("colour", "zone", 1), RED_CROWDED, "colour=red is skewed over zone by 2", id="skew"),
        pytest.param(Within("zone", ("b",)), RED_APART, "3 pods are outside of zone in b, such as p0", id="within"),
        pytest.param(Follows("wants", "zone"), evidence(("red", "n3")), "p0 is on n3, which does not", id="follows"),
        pytest.param(Feasible(1.0), evidence(feasible=[3, 1]), "from 1 nodes only, expected at least 3", id="feasible"),
        pytest.param(VictimsEach(3), evidence(victims=[3, 2]), "1 pods evicted another number than 3", id="victims"),
        pytest.param(Message("0/{nodes}: no"), evidence(messages=["what?"]), "found 'what?'", id="message"),
    ],
)
def test_not_as_it_must_be(expectation: Expectation, seen: Evidence, problem: str) -> None:
    found = problems([expectation], seen)
    assert len(found) == 1
    assert problem in found[0]


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        pytest.param(evidence(("red", "n1"), ("red", "n1"), cpu="600m"), "1 nodes gave more than they have", id="room"),
        pytest.param(evidence(("red", "n1"), spec={"nodeSelector": {"zone": "b"}}), "its node affinity", id="affinity"),
        pytest.param(
            evidence(("red", "n1"), taints=[{"key": "keep-out", "effect": "NoSchedule"}]),
            "whose taint keep-out it does not tolerate",
            id="a taint",
        ),
    ],
)
def test_violations_of_any_workload_are_reported(seen: Evidence, problem: str) -> None:
    found = problems([], seen)
    assert len(found) == 1
    assert problem in found[0]


def test_sums_that_are_not_those_of_the_pods_are_reported() -> None:
    seen = evidence(("red", "n1"))
    seen.engine.columns.resources.used[0, 0] += 1
    assert problems([], seen) == ["the sums of the columns are not those of the pods"]
