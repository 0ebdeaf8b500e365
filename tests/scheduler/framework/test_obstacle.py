"""Obstacles: every filter names its kind, and every kind has a size."""

from __future__ import annotations

from mooring.scheduler.catalogue import BUILT_IN
from mooring.scheduler.framework.obstacle import HARDNESS, ExplainContext, ObstacleKind
from mooring.scheduler.framework.plugin import Filter
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


def test_a_toleration_is_easier_to_add_than_a_label() -> None:
    assert HARDNESS[ObstacleKind.CORDON] < HARDNESS[ObstacleKind.TAINT] < HARDNESS[ObstacleKind.NODE_LABEL]


def test_every_kind_has_a_hardness() -> None:
    assert set(HARDNESS) == set(ObstacleKind)


def test_built_in_filters_name_their_kind() -> None:
    filters = [plugin for plugin in BUILT_IN if issubclass(plugin, Filter)]
    others = [plugin.name for plugin in filters if plugin.obstacle_kind is ObstacleKind.OTHER]
    assert sorted(others) == ["NodeLabel", "NodeName", "ServiceAffinity"]


def test_nominated_pods_of_a_row() -> None:
    engine = engine_of(node("n1"), pod("nominated", nominated="n1"))
    nominated = tuple(engine.columns.nominations.on("n1"))
    context = ExplainContext(engine.record(pod()), {0: nominated})
    assert [each.name for each in context.nominated_to(0)] == ["nominated"]
    assert context.nominated_to(1) == ()
