"""A scheduler plugin added as CONTRIBUTING.md describes: one file, and one line in the catalogue."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from mooring.api.kinds import NODE
from mooring.kit.entropy import Entropy
from mooring.scheduler import catalogue, plugins
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.plugin import Filter
from mooring.scheduler.framework.registry import Registry
from tests.builders import node, pod
from tests.docs.pages import ROOT
from tests.scheduler.world import World, play

MODULE = '''"""NodeMaintenance: reject nodes with planned repairs, and prefer those that were repaired lately."""

from __future__ import annotations

import numpy as np

from mooring.api.views.node import Node
from mooring.scheduler.cache.arrays import Bools, Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.plugin import Filter, Proceed, Scope, Score
from mooring.scheduler.framework.status import Code, Reason

LABEL = "example.com/maintenance"


class NodeMaintenance(Filter[None], Score[None]):
    name = "NodeMaintenance"
    filter_scope = score_scope = Scope.NODE
    filter_reasons = (Reason("node(s) were about to be repaired", Code.UNRESOLVABLE),)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.filter_calls = 0

    def pre_filter(self, pod: PodInfo) -> Proceed[None]:
        return Proceed(None)

    def filter(self, state: None, rows: Rows) -> Int64s:
        self.filter_calls += 1
        return self._rows_with("planned")[rows].astype(np.int64)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> None:
        return None

    def score(self, state: None, rows: Rows) -> Int64s:
        return 100 * self._rows_with("done")[rows].astype(np.int64)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return (ClusterEventWithHint(EventResource.NODE, changes, _is_not_planned, per_signature=True),)

    def _rows_with(self, value: str) -> Bools:
        nodes = self._columns.nodes[: self._columns.height]
        return np.array([node is not None and node.metadata.labels.get(LABEL) == value for node in nodes])


def _is_not_planned(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    return queue_if(new.metadata.labels.get(LABEL) != "planned")
'''

IMPORT = "from mooring.scheduler.plugins.node_maintenance import NodeMaintenance\n"
LAST_LINE = "    NodeDeclaredFeatures,\n)\n"
LINE = "    NodeMaintenance,\n"
LABEL = "example.com/maintenance"
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "NodeMaintenance", "weight": 5}]}}}],
}


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """What a contributor edits: a new module, and the catalogue."""
    (tmp_path / "node_maintenance.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(plugins, "__path__", [*plugins.__path__, str(tmp_path)])
    assert catalogue.__file__ is not None
    text = Path(catalogue.__file__).read_text(encoding="utf-8")
    assert text.count(LAST_LINE) == 1
    text = text.replace("\nPLUGINS:", f"\n{IMPORT}\nPLUGINS:").replace(LAST_LINE, LAST_LINE.replace(")", f"{LINE})"))
    edited = ModuleType(catalogue.__name__)
    exec(compile(text, catalogue.__file__, "exec"), vars(edited))
    found: Registry = edited.default_registry()
    return found


def engine_with(registry: Registry) -> Engine:
    engine = Engine(load_configuration(CONFIG), entropy=Entropy(1), registry=registry)
    for name, value in {"n1": "planned", "n2": "", "n3": "done"}.items():
        engine.put(node(name, labels={LABEL: value} if value else {}))
    return engine


def test_it_filters_and_scores(registry: Registry) -> None:
    engine = engine_with(registry)
    decision = engine.decide(engine.record(pod("web")), in_full=True)
    status = decision.node_to_status["n1"]
    assert status is not None
    assert (status.plugin, status.reasons) == ("NodeMaintenance", ("node(s) were about to be repaired",))
    assert {name: scores["NodeMaintenance"] for name, scores in decision.scores.items()} == {"n2": 0, "n3": 500}
    assert decision.node_name == "n3"


def test_its_results_are_cached_by_its_scope(registry: Registry) -> None:
    engine = engine_with(registry)
    (plugin,) = [
        use.plugin for use in engine.cycles["default-scheduler"].profile.filters if use.plugin.name == "NodeMaintenance"
    ]
    assert isinstance(plugin, Filter)
    for name in ("web-1", "web-2", "web-3"):
        engine.assume(engine.decide(engine.record(pod(name))))
    assert vars(plugin)["filter_calls"] == 1
    engine.put(node("n1"))
    assert engine.decide(engine.record(pod("web-4"))).feasible_count == 3


def test_an_event_that_it_registers_requeues_a_rejected_pod(registry: Registry) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", labels={LABEL: "planned"}), pod("web"))
        await world.settle(1)
        assert (await world.events())[0][2].startswith("0/1 nodes are available: 1 node(s) were about to be repaired. ")
        await world.patch("n1", {"metadata": {"labels": {LABEL: "done"}}}, NODE)
        await world.settle(5)
        assert await world.node_of("web") == "n1"

    play(story, config=CONFIG, registry=registry)


def test_the_recipe_names_these_steps() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipe = text.partition("### Add a scheduler plugin")[2].partition("###")[0]
    for place in (
        "src/mooring/scheduler/plugins/",
        "src/mooring/scheduler/catalogue.py",
        "PLUGINS",
        "filter_scope",
        "score_scope",
        "filter_reasons",
        "events_to_register",
    ):
        assert f"`{place}`" in recipe
