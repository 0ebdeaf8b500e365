"""SchedulingGates: a pod with gates does not enter the queue."""

from __future__ import annotations

import pytest

from mooring.scheduler.framework.status import Status
from mooring.scheduler.plugins.scheduling_gates import SchedulingGates
from tests.builders import node, pod
from tests.scheduler.harness import engine_of, plugin_of


@pytest.mark.parametrize(
    ("gates", "text"), [(["quota"], "[quota]"), (["quota", "network"], "[quota network]")], ids=["one", "several"]
)
def test_gates_are_named(gates: list[str], text: str) -> None:
    engine = engine_of(node("n1"))
    answer = plugin_of(engine, SchedulingGates).pre_enqueue(engine.record(pod(gates=gates)))
    assert answer == Status.unresolvable(f"waiting for scheduling gates: {text}")


def test_without_gates_a_pod_may_pass() -> None:
    engine = engine_of(node("n1"))
    assert plugin_of(engine, SchedulingGates).pre_enqueue(engine.record(pod())) is None


def test_pods_of_one_template_have_their_own_gates() -> None:
    engine = engine_of(node("n1"))
    assert engine.decide(engine.record(pod("gated", gates=["g"]))).node_name is None
    assert engine.decide(engine.record(pod("free"))).node_name == "n1"
