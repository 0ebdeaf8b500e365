from __future__ import annotations

from mooring.scheduler.cycle.obstacle import HARDNESS, Kind, Place
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


def test_promised_pods_are_here_too() -> None:
    engine = engine_of(node("n1"), pod("running", on="n1"), pod("nominated", nominated="n1"))
    promised = tuple(engine.columns.nominations.on("n1"))
    place = Place(engine.columns, engine.record(pod()), 0, promised)
    assert [each.name for each in place.pods_here()] == ["running", "nominated"]
    assert place.node_name == "n1"


def test_one_line_in_a_pod_is_less_than_other_labels_on_a_node() -> None:
    assert HARDNESS[Kind.CORDON] < HARDNESS[Kind.TAINT] < HARDNESS[Kind.NODE_LABEL]
