"""NodeUnschedulable: cordoned nodes."""

from __future__ import annotations

import pytest

from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.plugins.node_unschedulable import NodeUnschedulable
from tests.builders import node, pod
from tests.scheduler.harness import engine_of, rejected_by

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
