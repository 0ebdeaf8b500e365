"""NodeResourcesBalancedAllocation: whether a pod makes a node more even."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.views.pod import Pod
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.builders import node, pod
from tests.scheduler.config.builders import with_arguments
from tests.scheduler.harness import engine_of, scored_by

GPU = "example.com/gpu"


def balancing(*names: str) -> dict[str, Any]:
    resources = [{"name": name, "weight": 1} for name in names]
    return with_arguments("NodeResourcesBalancedAllocation", {"resources": resources})


@pytest.mark.parametrize(
    ("config", "wanting", "scores"),
    [
        pytest.param(None, pod(cpu=1, memory="1Gi"), {"even": 75, "lopsided": 75}, id="it changes nothing"),
        pytest.param(None, pod(memory="2Gi"), {"even": 62, "lopsided": 87}, id="it mends one and spoils the other"),
        pytest.param(None, pod(cpu=2), {"even": 62, "lopsided": 62}, id="it spoils both"),
        pytest.param(None, pod(cpu=100, memory="100Gi"), {"even": 75, "lopsided": 87}, id="more than full is full"),
        pytest.param(balancing("cpu"), pod(cpu=2), {"even": 75, "lopsided": 75}, id="one resource is always even"),
        pytest.param(
            balancing("cpu", "memory", GPU),
            pod(cpu=2, memory="2Gi", others={GPU: 1}),
            {"even": 75, "lopsided": 71},
            id="three resources where they are offered",
        ),
        pytest.param(
            balancing("cpu", "memory", GPU),
            pod(cpu=2, memory="2Gi"),
            {"even": 75, "lopsided": 75},
            id="a special one that is not requested is left out",
        ),
    ],
)
def test_how_even_it_gets(config: dict[str, Any] | None, wanting: Pod, scores: dict[str, int]) -> None:
    engine = engine_of(
        node("even", cpu=4, memory="4Gi"),
        node("lopsided", cpu=4, memory="4Gi", others={GPU: 4}),
        pod("a", cpu=2, on="lopsided"),
        config=config,
    )
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == scores


@pytest.mark.parametrize("wanting", [pod(), pod(others={GPU: 1}), pod(cpu=0)], ids=["nothing", "other things", "zero"])
def test_pods_that_request_nothing_of_it_are_left_out(wanting: Pod) -> None:
    assert scored_by(engine_of(node("n1")), NodeResourcesBalancedAllocation, wanting) is SKIP


def test_the_balance_is_what_it_is_now() -> None:
    """What is kept of the rows between pods follows their changes."""
    engine = engine_of(node("n1", cpu=4, memory="4Gi"), node("n2", cpu=4, memory="4Gi"))
    wanting = pod(memory="2Gi")
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == {"n1": 62, "n2": 62}
    engine.put(pod("a", cpu=2, on="n1"))
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == {"n1": 87, "n2": 62}
    engine.put(node("n2", cpu=4, memory="8Gi"))
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == {"n1": 87, "n2": 68}
    engine.remove(pod("a"))
    assert scored_by(engine, NodeResourcesBalancedAllocation, wanting) == {"n1": 62, "n2": 68}
