"""The engine: objects in, decisions out, assumed pods. The catalogue of plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.api.errors import ObjectError
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import PODS
from mooring.scheduler.catalogue import BUILT_IN, PLUGINS, default_registry
from mooring.scheduler.config import expand_profiles, load_configuration
from mooring.scheduler.config.profiles import DEFAULT_PLUGINS
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine, UnknownProfileError
from mooring.scheduler.framework.plugin import Reserve
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.policy.types import STRATEGY_PLUGINS
from tests.builders import namespace, node, pod, service
from tests.scheduler.cache.logical_state import logical_state
from tests.scheduler.config.builders import configuration, plugins, with_profile
from tests.scheduler.harness import decide, engine_of, settle


def pods_on(engine: Engine, name: str) -> list[str]:
    return [record.name for record in engine.columns.pods_on[engine.columns.row_of[name]].values()]


# Taking objects in


@pytest.mark.parametrize(
    ("view", "placed"),
    [
        pytest.param(pod("a", on="n1"), ["a"], id="a pod with a node counts there"),
        pytest.param(pod("a", on="n1", phase="Running"), ["a"], id="while it runs"),
        pytest.param(pod("a", on="n1", terminating=True), ["a"], id="and while it ends"),
        pytest.param(pod("a", on="n1", phase="Succeeded"), [], id="not when it has succeeded"),
        pytest.param(pod("a", on="n1", phase="Failed"), [], id="nor when it has failed"),
        pytest.param(pod("a"), [], id="a pod without a node counts nowhere"),
        pytest.param(pod("a", on="unknown"), [], id="nor one whose node nobody knows"),
    ],
)
def test_which_pods_count(view: Pod, placed: list[str]) -> None:
    assert pods_on(engine_of(node("n1"), view), "n1") == placed


@pytest.mark.parametrize(
    ("update", "n1", "n2"),
    [
        pytest.param(pod("a", on="n1", cpu=2), ["a"], [], id="it changes"),
        pytest.param(pod("a", on="n2"), [], ["a"], id="it moves"),
        pytest.param(pod("a", on="n1", phase="Succeeded"), [], [], id="it finishes"),
    ],
)
def test_a_placed_pod_changes(update: Pod, n1: list[str], n2: list[str]) -> None:
    engine = engine_of(node("n1"), node("n2"), pod("a", on="n1"))
    engine.put(update)
    assert (pods_on(engine, "n1"), pods_on(engine, "n2")) == (n1, n2)


def test_pods_are_known_by_uid() -> None:
    engine = engine_of(node("n1"), pod("a", uid="1", on="n1"), pod("a", uid="2", on="n1"))
    assert len(pods_on(engine, "n1")) == 2, "the old one may still be ending while its successor starts"
    engine.remove(pod("a", uid="1"))
    assert list(engine.columns.pods) == ["2"]


def test_removing_an_unknown_object_changes_nothing() -> None:
    engine = engine_of(node("n1"))
    for stranger in (node("n9"), pod("stranger"), pod("stranger", on="n1"), service("s"), namespace("shop")):
        engine.remove(stranger)
    assert engine.columns.node_count == 1


@pytest.mark.parametrize(
    "update",
    [
        pytest.param(pod("q", on="n2"), id="it got a node"),
        pytest.param(pod("q", nominated="n1", phase="Failed"), id="it failed"),
        pytest.param(pod("q", nominated="n1", terminating=True), id="it is being deleted"),
        pytest.param(None, id="it is gone"),
    ],
)
def test_a_nomination_ends(update: Pod | None) -> None:
    engine = engine_of(node("n1"), node("n2"), pod("q", nominated="n1"))
    assert [record.name for record in engine.columns.nominations.on("n1")] == ["q"]
    if update is not None:
        engine.put(update)
    else:
        engine.remove(pod("q"))
    assert list(engine.columns.nominations.on("n1")) == []


@pytest.mark.parametrize(
    ("scheduler", "nominated"),
    [
        pytest.param("", ["q"], id="the default scheduler"),
        pytest.param("default-scheduler", ["q"], id="a profile of this scheduler"),
        pytest.param("volcano", [], id="another scheduler"),
    ],
)
def test_only_nominations_of_its_own_pods_reserve_resources(scheduler: str, nominated: list[str]) -> None:
    engine = engine_of(node("n1", cpu=2), pod("q", cpu=2, priority=9, nominated="n1", scheduler=scheduler))
    assert [record.name for record in engine.columns.nominations.on("n1")] == nominated
    assert decide(engine, pod("p", cpu=1)).is_placed is (not nominated)


# Deciding


def test_deciding_changes_nothing() -> None:
    engine = engine_of(node("n1"), node("n2"), pod("a", on="n1"))
    before = logical_state(engine.columns)
    assert decide(engine, pod(cpu=1)).is_placed
    assert logical_state(engine.columns) == before


def test_profiles_decide_for_the_pods_that_ask_for_them() -> None:
    only_images = {"multiPoint": {"disabled": plugins("*"), "enabled": plugins("PrioritySort", "DefaultBinder")}}
    config = configuration(
        profiles=[{"schedulerName": "default-scheduler"}, {"schedulerName": "careless", "plugins": only_images}]
    )
    engine = engine_of(node("n1", unschedulable=True), config=config)
    assert decide(engine, pod()).node_name is None
    assert decide(engine, pod(scheduler="careless")).node_name == "n1"
    with pytest.raises(UnknownProfileError) as unknown:
        decide(engine, pod("lost", scheduler="nobody"))
    assert str(unknown.value) == (
        "pod default/lost names scheduler 'nobody'; the configuration has default-scheduler, careless"
    )


def test_ties_are_broken_by_the_seed() -> None:
    def chosen(seed: int) -> list[str | None]:
        engine = Engine(load_configuration(None), entropy=Entropy(seed))
        for number in range(8):
            engine.put(node(f"n{number}"))
        return [engine.decide(engine.record(pod(f"p{number}"))).node_name for number in range(20)]

    assert chosen(seed=1) == chosen(seed=1)
    assert chosen(seed=1) != chosen(seed=2)
    assert set(chosen(seed=1)) == {f"n{number}" for number in range(8)}, "every node has its chance"


# Believing


def test_an_assumed_pod_counts_at_once() -> None:
    engine = engine_of(node("n1", cpu=2), node("n2", cpu=1))
    assert settle(engine, pod("a", cpu=2), pod("b", cpu=1), pod("c", cpu=1)) == ["n1", "n2", None]


def test_assuming_and_forgetting_cancel_out() -> None:
    engine = engine_of(node("n1"), node("n2"), pod("a", cpu=1, on="n1"))
    before = logical_state(engine.columns)
    decision = decide(engine, pod("b", cpu=1, ports=["80"]))
    assert engine.assume(decision) is None
    assert decision.pod.node_name == decision.node_name
    assert logical_state(engine.columns) != before
    engine.forget(decision.pod)
    assert logical_state(engine.columns) == before


def test_the_watch_confirms_an_assumption() -> None:
    engine = engine_of(node("n1"))
    decision = decide(engine, pod("a", cpu=1))
    engine.assume(decision)
    arrival = decision.pod.arrival
    engine.put(pod("a", cpu=1, on="n1", phase="Running"))
    assert pods_on(engine, "n1") == ["a"]
    assert engine.columns.resources.used[PODS, 0] == 1
    assert engine.columns.pods["default/a"].arrival == arrival, "it came when it was assumed"


def test_an_assumed_pod_is_promised_nothing_more() -> None:
    waiting = pod("q", cpu=1, nominated="n1")
    engine = engine_of(node("n1"), waiting)
    engine.assume(decide(engine, waiting))
    assert len(engine.columns.nominations) == 0
    assert pods_on(engine, "n1") == ["q"]


class Ledger(Reserve):
    """Writes down what is reserved and taken back; rejects pods called `unlucky`."""

    name = "Ledger"
    entries: list[str]

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.entries = []

    def reserve(self, pod: PodInfo, row: int) -> Status | None:
        self.entries.append(f"{self.name} reserves {pod.name} on {self._columns.node_names[row]}")
        return Status.unschedulable("out of luck") if pod.name == "unlucky" and self.name == "Second" else None

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        self.entries.append(f"{self.name} unreserves {pod.name} on {node_name}")


class First(Ledger):
    name = "First"


class Second(Ledger):
    name = "Second"


class Third(Ledger):
    name = "Third"


def reserving() -> tuple[Engine, list[str]]:
    ledgers = (First, Second, Third)
    config = with_profile(plugins={"multiPoint": {"enabled": plugins(*(ledger.name for ledger in ledgers))}})
    engine = engine_of(node("n1"), config=config, registry=Registry([*PLUGINS, *ledgers]))
    entries: list[str] = []
    for plugin in engine.cycles["default-scheduler"].profile.reserves:
        if isinstance(plugin, Ledger):
            plugin.entries = entries
    return engine, entries


def test_reservations_are_taken_back_in_reverse() -> None:
    engine, entries = reserving()
    decision = decide(engine, pod("lucky"))
    assert engine.assume(decision) is None
    assert entries == [f"{name} reserves lucky on n1" for name in ("First", "Second", "Third")]
    entries.clear()
    engine.forget(decision.pod)
    assert entries == [f"{name} unreserves lucky on n1" for name in ("Third", "Second", "First")]


def test_a_rejected_reservation_leaves_no_trace() -> None:
    engine, entries = reserving()
    decision = decide(engine, pod("unlucky"))
    assert engine.assume(decision) == Status(Code.UNSCHEDULABLE, ("out of luck",), "Second")
    assert entries[2:] == ["Second unreserves unlucky on n1", "First unreserves unlucky on n1"]
    assert pods_on(engine, "n1") == []


# Promising


def preempting(*views: Pod) -> tuple[Engine, Decision]:
    engine = engine_of(node("n1", cpu=2), pod("victim", cpu=2, on="n1"), *views)
    decision = decide(engine, pod("urgent", cpu=2, priority=100))
    assert decision.preemption is not None
    return engine, decision


def test_a_preempting_pod_is_promised_its_node() -> None:
    engine, decision = preempting()
    assert engine.nominate(decision) == ()
    assert [record.name for record in engine.columns.nominations.on("n1")] == ["urgent"]
    assert decision.pod.nominated_node == "n1"
    engine.remove(pod("victim"))
    assert decide(engine, pod("late", cpu=2, priority=50)).node_name is None, "the resources are reserved"
    again = engine.decide(decision.pod)
    assert again.node_name == "n1"
    assert engine.assume(again) is None
    assert pods_on(engine, "n1") == ["urgent"]


def test_a_nomination_outranks_those_of_lower_priority() -> None:
    lesser, equal = pod("lesser", cpu=2, priority=5, nominated="n1"), pod("equal", priority=100, nominated="n1")
    elsewhere = pod("elsewhere", priority=5, nominated="n2")
    engine, decision = preempting(lesser, equal, elsewhere)
    (outranked,) = engine.nominate(decision)
    assert (outranked.name, outranked.nominated_node) == ("lesser", "")
    assert [record.name for record in engine.columns.nominations.on("n1")] == ["equal", "urgent"]
    assert [record.name for record in engine.columns.nominations.on("n2")] == ["elsewhere"]


# ------------------------------------------------------------------------------------------------- from files, place

CLUSTER = """
{apiVersion: v1, kind: Node, metadata: {name: big}, status: {allocatable: {cpu: "3", memory: 8Gi, pods: "9"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: small}, status: {allocatable: {cpu: "1", memory: 8Gi, pods: "9"}}}
"""
MANIFEST = "{metadata: {generateName: web-}, spec: {containers: [{name: c, resources: {requests: {cpu: '1'}}}]}}"


def test_an_engine_from_files_places_one_pod_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    engine = Engine.from_files(tmp_path / "cluster.yaml")
    decisions = [engine.place(MANIFEST) for _ in range(5)]
    assert [decision.node_name for decision in decisions] == ["big", "big", *_either(decisions[2:4]), None]
    assert [decision.pod.key for decision in decisions[:2]] == ["default/web-1", "default/web-2"]
    assert (decisions[4].message or "").startswith("0/2 nodes are available: 2 Insufficient cpu.")


def _either(decisions: list[Decision]) -> list[str | None]:
    assert {decision.node_name for decision in decisions} == {"big", "small"}
    return [decision.node_name for decision in decisions]


def test_a_placed_pod_is_not_placed_again(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    engine = Engine.from_files(tmp_path)
    manifest = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": [{"name": "c"}]}}
    decision = engine.place(manifest, in_full=True)
    assert decision.node_name
    assert set(decision.scores) == {"big", "small"}
    with pytest.raises(ValueError, match=f"pod shop/web is on node {decision.node_name} already"):
        engine.place(manifest)
    engine.forget(decision.pod)
    assert engine.place(manifest).node_name


def test_an_engine_from_files_takes_a_configuration_and_plugins(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "rule.py").write_text(
        "from mooring.scheduler.framework.node_plugins import FilterPlugin, Status\n"
        "class NoBigNodes(FilterPlugin):\n"
        "    name = 'NoBigNodes'\n"
        "    def filter(self, pod, node_info):\n"
        "        return Status.unschedulable('too big') if node_info.node.metadata.name == 'big' else None\n"
    )
    (tmp_path / "scheduler.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: mine}]\n"
    )
    engine = Engine.from_files(
        tmp_path / "cluster.yaml", config=tmp_path / "scheduler.yaml", plugins=[str(tmp_path / "rule.py")]
    )
    assert list(engine.cycles) == ["mine"]
    with pytest.raises(UnknownProfileError, match="default-scheduler"):
        engine.place(MANIFEST)
    assert engine.place(MANIFEST.replace("spec: {", "spec: {schedulerName: mine, ")).node_name == "small"


@pytest.mark.parametrize("manifest", ["a: [", "[]", "{metadata: 1}", "{spec: {containers: 1}}"])
def test_a_manifest_that_is_no_pod_is_an_object_error(manifest: str, tmp_path: Path) -> None:
    with pytest.raises(ObjectError):
        Engine.from_files().place(manifest)


# --- The catalogue has every plugin of kube-scheduler v1.36, and those of the older Policy ---------------------------


OF_OLD_POLICIES = {"NodeLabel", "ServiceAffinity", "SelectorSpread", *STRATEGY_PLUGINS.values()}
"""kube-scheduler dropped these plugins with Policy or later. A configuration can enable them by name."""


def test_names_are_unique() -> None:
    names = [plugin.name for plugin in BUILT_IN]
    assert sorted(set(names)) == sorted(names)


def test_the_default_profile_uses_none_of_those_of_old_policies() -> None:
    plans = expand_profiles(load_configuration(None), default_registry().implements)
    used = {use.name for uses in plans["default-scheduler"].at.values() for use in uses}
    assert used == {entry.name for entry in DEFAULT_PLUGINS}
    assert used <= {plugin.name for plugin in PLUGINS} == {plugin.name for plugin in BUILT_IN} - OF_OLD_POLICIES
