"""TaintToleration: taints that reject a pod, and taints that lower a score. NodeUnschedulable."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import Pod
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.plugins.node_unschedulable import NodeUnschedulable
from mooring.scheduler.plugins.taint_toleration import TaintToleration
from tests.builders import node, pod
from tests.scheduler.harness import engine_of, rejected_by, scored_by

NODES = (
    node("clean"),
    node("gpu", taints=["gpu=true:NoSchedule"]),
    node("down", taints=["down:NoExecute"]),
    node("old", taints=["old:PreferNoSchedule", "slow:PreferNoSchedule"]),
    node("slow", taints=["slow:PreferNoSchedule"]),
)


@pytest.mark.parametrize(
    ("tolerating", "rejecting"),
    [
        pytest.param(pod(), {"gpu", "down"}, id="nothing tolerated"),
        pytest.param(pod(tolerations=["gpu=true:NoSchedule"]), {"down"}, id="one of them"),
        pytest.param(pod(tolerations=["gpu=false:NoSchedule", "down"]), {"gpu"}, id="another value is not enough"),
        pytest.param(pod(tolerations=[""]), set(), id="everything tolerated"),
    ],
)
def test_who_is_kept_away(tolerating: Pod, rejecting: set[str]) -> None:
    rejected = rejected_by(engine_of(*NODES), TaintToleration, tolerating)
    assert rejected == dict.fromkeys(rejecting, ("node(s) had untolerated taint(s)",))


@pytest.mark.parametrize(
    ("tolerating", "scores"),
    [
        pytest.param(pod(), {"clean": 100, "gpu": 100, "down": 100, "old": 0, "slow": 50}, id="the more the worse"),
        pytest.param(
            pod(tolerations=["old:PreferNoSchedule"]),
            {"clean": 100, "gpu": 100, "down": 100, "old": 0, "slow": 0},
            id="tolerated ones do not count",
        ),
        pytest.param(
            pod(tolerations=["old:NoSchedule", "slow"]),
            {"clean": 100, "gpu": 100, "down": 100, "old": 0, "slow": 100},
            id="tolerations for other effects do not help",
        ),
        pytest.param(
            pod(tolerations=[""]),
            {"clean": 100, "gpu": 100, "down": 100, "old": 100, "slow": 100},
            id="nothing to avoid",
        ),
    ],
)
def test_who_is_avoided(tolerating: Pod, scores: dict[str, int]) -> None:
    assert scored_by(engine_of(*NODES), TaintToleration, tolerating) == scores


def test_what_is_avoided_is_measured_among_the_nodes_that_fit() -> None:
    assert scored_by(engine_of(*NODES), TaintToleration, pod(), feasible=["slow", "clean"]) == {"slow": 0, "clean": 100}


# --- NodeUnschedulable: cordoned nodes -------------------------------------------------------------------------------


CORDON = "node.kubernetes.io/unschedulable"


def test_a_cordoned_node_rejects() -> None:
    engine = engine_of(node("n1"), node("n2", unschedulable=True))
    assert rejected_by(engine, NodeUnschedulable, pod()) == {"n2": ("node(s) were unschedulable",)}
    engine.put(node("n2"))
    assert rejected_by(engine, NodeUnschedulable, pod()) == {}


@pytest.mark.parametrize("toleration", [f"{CORDON}:NoSchedule", CORDON, ":NoSchedule", ""])
def test_a_pod_that_tolerates_the_cordon_goes_anywhere(toleration: str) -> None:
    assert (
        rejected_by(engine_of(node("n1", unschedulable=True)), NodeUnschedulable, pod(tolerations=[toleration])) is SKIP
    )


def test_another_effect_is_not_enough() -> None:
    engine = engine_of(node("n1", unschedulable=True))
    rejected = rejected_by(engine, NodeUnschedulable, pod(tolerations=[f"{CORDON}:NoExecute"]))
    assert rejected == {"n1": ("node(s) were unschedulable",)}
