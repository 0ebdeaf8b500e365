"""NodeName: a pod that names its node."""

from __future__ import annotations

import pytest

from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.plugins.node_name import NodeName
from tests.builders import node, pod
from tests.scheduler.harness import engine_of, rejected_by

TEXT = ("node(s) didn't match the requested node name",)


@pytest.mark.parametrize(("named", "rejecting"), [("n2", ["n1", "n3"]), ("nowhere", ["n1", "n2", "n3"])])
def test_only_the_named_node_takes_it(named: str, rejecting: list[str]) -> None:
    engine = engine_of(node("n1"), node("n2"), node("n3"))
    assert rejected_by(engine, NodeName, pod(on=named)) == dict.fromkeys(rejecting, TEXT)


def test_most_pods_name_none() -> None:
    assert rejected_by(engine_of(node("n1")), NodeName, pod()) is SKIP
