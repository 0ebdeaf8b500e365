"""The keeper: shapes are asked once, and again only where something changed. (Right answers are a property.)"""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.cache.whatif import WhatIf
from mooring.scheduler.cycle import keeper as keepers
from mooring.scheduler.cycle.keeper import Keeper
from mooring.scheduler.cycle.victims import VictimBook
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import Filter, Reads, Score
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Reason
from mooring.scheduler.plugins.catalogue import PLUGINS
from tests.api.builders import preferred
from tests.builders import MIB, node, owned_by, pod
from tests.device_builders import device_class, gpus
from tests.scheduler.config.builders import plugins, with_profile
from tests.scheduler.harness import engine_of


class Diary(Filter[None], Score[None]):
    """Refuses nobody, and notes down which nodes it was asked about."""

    filter_reasons = (Reason("node(s) were asked"),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.asked: list[str] = []

    def prepare(self, pod: PodRecord) -> None:
        return None

    def filter(self, state: None, rows: Rows) -> Int64s:
        self.asked += [self._columns.node_names[row] for row in np.arange(self._columns.height)[rows]]
        return np.zeros(length_of(rows), dtype=np.int64)

    def score(self, state: None, rows: Rows) -> Int64s:
        return np.zeros(length_of(rows), dtype=np.int64)

    def read(self) -> list[str]:
        asked, self.asked = sorted(self.asked), []
        return asked


class FactsDiary(Diary):
    name = "FactsDiary"
    filter_reads = Reads.FACTS


class UsageDiary(Diary):
    name = "UsageDiary"
    filter_reads = Reads.USAGE


class ClusterDiary(Diary):
    name = "ClusterDiary"


class LevelDiary(UsageDiary):
    name = "LevelDiary"

    def filters_by_level(self, state: None) -> bool:
        return True


DIARIES = (FactsDiary, UsageDiary, ClusterDiary)
ALL = ["n1", "n2", "n3"]


def watched() -> Engine:
    config = with_profile(plugins={"multiPoint": {"enabled": plugins(*(each.name for each in DIARIES))}})
    return engine_of(node("n1"), node("n2"), node("n3"), config=config, registry=Registry([*PLUGINS, *DIARIES]))


def asked(engine: Engine, name: str = "web") -> dict[str, list[str]]:
    """Which nodes each diary is asked about when a pod is decided."""
    profile = engine.cycles["default-scheduler"].profile
    diaries = [plugin for plugin in profile.plugins.values() if isinstance(plugin, Diary)]
    for diary in diaries:
        diary.read()
    engine.decide(engine.record(pod(name, labels={"app": "web"})))
    return {diary.name: diary.read() for diary in diaries}


def test_the_first_pod_of_a_shape_asks_everybody() -> None:
    assert asked(watched()) == {"FactsDiary": ALL, "UsageDiary": ALL, "ClusterDiary": ALL}


def test_the_next_pod_of_the_shape_asks_only_who_reads_the_cluster() -> None:
    engine = watched()
    asked(engine)
    assert asked(engine, "another") == {"FactsDiary": [], "UsageDiary": [], "ClusterDiary": ALL}


def test_after_a_pod_came_its_row_is_asked_who_reads_usage() -> None:
    engine = watched()
    asked(engine)
    engine.put(pod("new", on="n2"))
    assert asked(engine) == {"FactsDiary": [], "UsageDiary": ["n2"], "ClusterDiary": ALL}
    engine.put(pod("q", nominated="n3"))
    usage = asked(engine)["UsageDiary"]
    assert set(usage) == {"n3"}, "with the nominated pod and without it"


def test_who_judges_by_level_is_asked_once_for_each() -> None:
    config = with_profile(plugins={"multiPoint": {"enabled": plugins(LevelDiary.name)}})
    nodes = [node("n1"), node("n2"), node("n3", cpu=64)]
    engine = engine_of(*nodes, config=config, registry=Registry([*PLUGINS, LevelDiary]))
    asked(engine)
    engine.put(pod("a", cpu=1, on="n1"))
    assert asked(engine) == {"LevelDiary": ["n1"]}
    engine.put(pod("b", cpu=1, on="n2"))
    assert asked(engine) == {"LevelDiary": []}, "as many pods on a node of the same sort"
    engine.put(pod("c", cpu=1, on="n3"))
    engine.put(pod("d", cpu=2, on="n2"))
    assert asked(engine) == {"LevelDiary": ["n2", "n3"]}


def test_what_is_known_of_a_level_does_not_hide_what_facts_say() -> None:
    """Both nodes are at the same level, and only one of them is tainted."""
    engine = engine_of(node("n1", cpu=4), node("n2", cpu=4, taints=["gpu:NoSchedule"]))
    keeper = Keeper(engine.cycles["default-scheduler"].profile, engine.columns)
    record = engine.record(pod(cpu=2))
    keeper.kept(record)
    engine.put(pod("a", cpu=1, on="n1"))
    engine.put(pod("b", cpu=1, on="n2"))
    assert keeper.kept(record).fits[:2].tolist() == [True, False]
    engine.put(pod("c", cpu=2, on="n1"))
    engine.put(pod("d", cpu=2, on="n2"))
    kept = keeper.kept(record)
    anew = Keeper(engine.cycles["default-scheduler"].profile, engine.columns).kept(record)
    assert kept.first[:2].tolist() == anew.first[:2].tolist()
    assert kept.bits[:2].tolist() == anew.bits[:2].tolist()


def test_of_all_shapes_together_only_so_many_levels_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepers, "LEVELS_MAX", 5)
    engine = engine_of(node("n1", cpu=64), node("n2", cpu=64))
    records = [engine.record(pod(cpu=cpu)) for cpu in (1, 2, 3)]
    profile = engine.cycle_for(records[0]).profile
    keeper = Keeper(profile, engine.columns)
    remembered = []
    for number in range(21):
        engine.put(pod(f"p{number}", cpu=3, on="n1"))
        kept = [keeper.kept(record) for record in records]
        remembered.append(sum(len(each.of_level) for each in kept))
        anew = Keeper(profile, engine.columns)
        assert [each.ranked[:2].tolist() for each in kept] == [anew.kept(r).ranked[:2].tolist() for r in records]
    assert max(remembered) == 5


def test_after_a_node_changed_its_row_is_asked_everything() -> None:
    engine = watched()
    asked(engine)
    engine.put(node("n3", cpu=64))
    engine.put(pod("new", on="n1"))
    assert asked(engine) == {"FactsDiary": ["n3"], "UsageDiary": ["n1", "n3"], "ClusterDiary": ALL}


def test_a_node_that_goes_is_not_asked_any_more() -> None:
    engine = watched()
    asked(engine)
    engine.remove(node("n2"))
    assert asked(engine)["UsageDiary"] == []
    assert engine.decide(engine.record(pod("p", labels={"app": "web"}))).feasible_count == 2


def test_shapes_unused_for_longest_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepers, "KEPT_BYTES_MAX", 0)
    engine = watched()
    asked(engine)
    for number in range(keepers.KEPT_MIN + 1):
        engine.decide(engine.record(pod(f"other-{number}", labels={"number": str(number)})))
    assert asked(engine)["FactsDiary"] == ALL


@pytest.mark.parametrize(
    ("other", "is_shared"),
    [
        pytest.param(pod("b", cpu=1, labels={"app": "b"}), True, id="other labels"),
        pytest.param(pod("b", cpu=1, owner=owned_by("ReplicaSet", "b")), True, id="another owner"),
        pytest.param(pod("b", cpu=2, labels={"app": "a"}), False, id="other requests"),
        pytest.param(pod("b", cpu=1, labels={"app": "a"}, priority=7), False, id="another priority"),
        pytest.param(pod("b", cpu=1, labels={"app": "a"}, namespace="other"), False, id="another namespace"),
    ],
)
def test_shapes_that_ask_the_same_of_a_node_share_what_is_kept(other: Pod, is_shared: bool) -> None:
    engine = engine_of(node("n1"), node("n2"))
    first, second = engine.record(pod("a", cpu=1, labels={"app": "a"})), engine.record(other)
    keeper = Keeper(engine.cycle_for(first).profile, engine.columns)
    kept = keeper.kept(first)
    assert (keeper.kept(second) is kept) is is_shared
    assert keeper.kept(first) is kept


def test_a_plugin_of_somebody_else_may_read_labels() -> None:
    engine = watched()
    first, second = (engine.record(pod(name, labels={"app": name})) for name in ("a", "b"))
    keeper = Keeper(engine.cycle_for(first).profile, engine.columns)
    assert keeper.kept(first) is not keeper.kept(second)


def test_what_preemption_found_out_is_not_shared() -> None:
    engine = engine_of(node("n1"))
    first, second = (engine.record(pod(name, labels={"app": name})) for name in ("a", "b"))
    keeper = Keeper(engine.cycle_for(first).profile, engine.columns)
    kept = keeper.kept(first)
    kept.victims = VictimBook()
    own = keeper.kept(second)
    assert own is not kept
    assert own.victims is None
    assert keeper.kept(second) is own
    assert keeper.kept(first) is kept


def test_nothing_is_kept_inside_of_an_experiment() -> None:
    engine = engine_of(node("n1"))
    record = engine.record(pod())
    keeper = Keeper(engine.cycle_for(record).profile, engine.columns)
    with WhatIf(engine.columns), pytest.raises(AssertionError, match="must not be kept"):
        keeper.kept(record)


RANKED = (node("n1", labels={"rank": "1"}), node("n2", labels={"rank": "2"}), node("n3", labels={"rank": "3"}))
LIKES = [preferred(10, "rank Gt 1"), preferred(20, "rank Gt 2")]


def test_kept_preferences_follow_a_node_that_changes() -> None:
    """The same rows fit, but what is best among them is another."""
    engine = engine_of(*RANKED)
    record = engine.record(pod(prefers_nodes=LIKES))
    assert engine.decide(record).node_name == "n3"
    engine.put(node("n3", labels={"rank": "0"}))
    assert engine.decide(record).node_name == "n2"
    engine.put(node("n1", labels={"rank": "9"}))
    assert engine.decide(record).node_name == "n1"


@pytest.mark.parametrize("newcomer", [pod("q", cpu=10, priority=9, nominated="n3"), pod("r", cpu=10, on="n3")])
def test_kept_preferences_follow_the_rows_that_fit(newcomer: Pod) -> None:
    """While n3 fits, n1 looks poor beside it, and n2 wins because it is empty; without n3, n1 is the best there is."""
    engine = engine_of(
        node("n1", cpu=10, memory="10Gi", labels={"rank": "2"}),
        node("n2", cpu=10, memory="10Gi", labels={"rank": "1"}),
        node("n3", cpu=10, memory="10Gi", labels={"rank": "3"}, taints=["old:PreferNoSchedule"]),
        pod("a", cpu=9, memory="9Gi", on="n1"),
    )
    record = engine.record(pod(cpu="100m", prefers_nodes=[preferred(100, "rank Gt 2"), preferred(60, "rank Gt 1")]))
    assert engine.decide(record).node_name == "n2"
    engine.put(newcomer)
    assert engine.decide(record).node_name == "n1"
    engine.remove(newcomer)
    assert engine.decide(record).node_name == "n2"


def test_kept_scores_of_images_follow_the_number_of_nodes() -> None:
    """With every node that lacks it, an image is worth less on the one that has it."""
    engine = engine_of(node("full", cpu=8, images={"web:1": 4000 * MIB}), node("n1", cpu=8), pod("a", cpu=4, on="full"))
    record = engine.record(pod(image="web:1"))
    assert engine.decide(record).node_name == "full"
    for number in range(2, 60):
        engine.put(node(f"n{number}", cpu=8))
    assert engine.decide(record).node_name == "n1"


GPUS = "example.com/gpu"


@pytest.mark.parametrize("pods_before", [pytest.param(1, id="of a newcomer"), pytest.param(2, id="of a kept family")])
def test_what_plugins_prepared_follows_a_device_class_that_comes_and_goes(pods_before: int) -> None:
    engine = engine_of(node("n1"), gpus("n1", 2))
    record = engine.record(pod(others={GPUS: 1}))
    keeper = Keeper(engine.cycle_for(record).profile, engine.columns)
    assert keeper.newcomer(record) is not None
    if pods_before == 2:
        assert not keeper.kept(record).fits[0]
    engine.put(device_class(resource=GPUS))
    assert keeper.kept(record).fits[0], "a device class stands behind the resource now"
    engine.remove(device_class(resource=GPUS))
    assert not keeper.kept(record).fits[0]
