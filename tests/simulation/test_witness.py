"""The witness notices what must never be: a checker that never speaks proves nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mooring.api.kinds import DEPLOYMENT, NODE, POD, REPLICA_SET, Kind
from tests.simulation.witness import Witness

Write = tuple[Kind, str, dict[str, Any] | None]


def node(cpu: str = "2") -> Write:
    return NODE, "n1", {"metadata": {"name": "n1", "uid": "n1"}, "status": {"allocatable": {"cpu": cpu}}}


def pod(name: str, *, on: str = "", phase: str = "Running", owner: str = "", is_going: bool = False) -> Write:
    metadata: dict[str, Any] = {"name": name, "uid": name}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "kind": "ReplicaSet", "controller": True}]
    if is_going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    containers = [{"image": "app:1", "resources": {"requests": {"cpu": "1000m"}}}]
    spec: dict[str, Any] = {"containers": containers, **({"nodeName": on} if on else {})}
    return POD, name, {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def deployment(replicas: int, *, surge: int = 0, generation: int = 1, observed: int = 0) -> Write:
    metadata = {"name": "web", "uid": "web", "generation": generation}
    spec = {"replicas": replicas, "strategy": {"rollingUpdate": {"maxSurge": surge}}}
    return DEPLOYMENT, "web", {"metadata": metadata, "spec": spec, "status": {"observedGeneration": observed}}


def replica_set(name: str, replicas: int) -> Write:
    owner = {"uid": "web", "kind": "Deployment", "controller": True}
    metadata = {"name": name, "uid": name, "generation": 1, "ownerReferences": [owner]}
    return REPLICA_SET, name, {"metadata": metadata, "spec": {"replicas": replicas}}


def gone(kind: Kind, name: str) -> Write:
    return kind, name, None


@pytest.mark.parametrize(
    ("writes", "lost_answers", "broken"),
    [
        pytest.param([node(), pod("a"), pod("a", on="n1")], 0, "", id="a pod is bound"),
        pytest.param([pod("a", on="n1"), pod("a", on="n2")], 0, "was on n1 and is on 'n2'", id="a pod is moved"),
        pytest.param([pod("a", on="n1"), pod("a")], 0, "was on n1 and is on ''", id="a pod loses its node"),
        pytest.param(
            [pod("a", on="n1"), gone(POD, "a"), pod("a", on="n2")], 0, "", id="another pod of the name may go elsewhere"
        ),
        pytest.param(
            [node(), *(pod(name, on="n1") for name in "abc")], 0, "n1 has 2000m and is asked for 3000m", id="too many"
        ),
        pytest.param(
            [node(), pod("a", on="n1", phase="Failed"), pod("b", on="n1"), pod("c", on="n1")],
            *(0, ""),
            id="who is over takes no room",
        ),
        pytest.param(
            [node(), pod("a", on="n1", is_going=True), pod("b", on="n1"), pod("c", on="n1")],
            *(0, "n1 has 2000m and is asked for 3000m"),
            id="who is going takes room still",
        ),
        pytest.param(
            [deployment(3, surge=1), replica_set("old", 3), replica_set("new", 1)], 0, "", id="as many as may be"
        ),
        pytest.param(
            [deployment(3, surge=1), replica_set("old", 3), replica_set("new", 2)],
            *(0, "its Deployment asks for 5 pods and may for 4"),
            id="one more than may be",
        ),
        pytest.param(
            [deployment(5), replica_set("old", 3), deployment(1, generation=2, observed=1), replica_set("old", 5)],
            *(0, ""),
            id="a controller may not have seen the newest wish",
        ),
        pytest.param(
            [deployment(5), replica_set("old", 3), deployment(1, generation=2, observed=2), replica_set("old", 5)],
            *(0, "its Deployment asks for 5 pods and may for 1"),
            id="but it has said that it has",
        ),
        pytest.param(
            [deployment(5), replica_set("old", 5), deployment(1, generation=2, observed=2), replica_set("old", 4)],
            *(0, ""),
            id="shrinking is never wrong",
        ),
        pytest.param(
            [replica_set("old", 1), pod("a", owner="old"), pod("b", owner="old")],
            *(0, "one of 2 pods of a set that may have 1"),
            id="a pod too many",
        ),
        pytest.param(
            [replica_set("old", 1), pod("a", owner="old"), pod("b", owner="old")], 1, "", id="whose answer was lost"
        ),
        pytest.param(
            [replica_set("old", 1), pod("a", owner="old", is_going=True), pod("b", owner="old")],
            *(0, ""),
            id="in the place of one that is going",
        ),
    ],
)
def test_what_is_broken(writes: list[Write], lost_answers: int, broken: str) -> None:
    witness = Witness(lambda: lost_answers)
    for revision, (kind, name, document) in enumerate(writes):
        value = None if document is None else msgspec.json.encode(document)
        witness.saw(kind.key("default", name), revision, value)
    assert len(witness.broken) == bool(broken)
    assert broken in "".join(witness.broken)
