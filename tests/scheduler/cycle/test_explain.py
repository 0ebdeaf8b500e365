"""Explaining a pod: the obstacles of every node, and which nodes are nearest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import PLUGINS
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.obstacle import Distances, ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import Filter, Proceed
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Reason
from tests.builders import HOSTNAME, ZONE, node, pod, pods_like, spread
from tests.scheduler.config.builders import plugins, with_profile
from tests.scheduler.harness import engine_of, explained, obstacles, without_line


def nearest(engine: Engine, view: Pod) -> list[str]:
    return list(explained(engine, view).nearest)


def texts(engine: Engine, view: Pod, name: str) -> list[str]:
    return [obstacle.text for obstacle in obstacles(engine, view, name)]


@pytest.mark.parametrize(
    ("nodes", "view", "order"),
    [
        pytest.param(
            [node("two", cpu=1, memory="1Gi"), node("one", cpu=1)], pod(cpu=2, memory="2Gi"), ["one", "two"],
            id="fewer obstacles are nearer",
        ),
        pytest.param(
            [node("far", cpu=2), node("near", cpu=3)], pod(cpu=4), ["near", "far"], id="a smaller shortage is nearer"
        ),
        pytest.param(
            [node("small", cpu="1900m"), node("cordoned", unschedulable=True)], pod(cpu=2), ["cordoned", "small"],
            id="what can be undone is nearer than a node that is too small",
        ),
        pytest.param([node("b", cpu=1), node("a", cpu=1)], pod(cpu=2), ["a", "b"], id="equals are reported by name"),
        pytest.param(
            [node("both", taints=["x:NoSchedule", "y:NoExecute"]), node("one", taints=["x:NoSchedule"])],
            pod(), ["one", "both"], id="each taint counts",
        ),
        pytest.param(
            [node("tainted", taints=["x:NoSchedule"]), node("labelled")],
            pod(node_labels={"disk": "ssd"}), ["labelled", "tainted"], id="a taint more is one more obstacle",
        ),
    ],
)  # fmt: skip
def test_nearer_nodes_come_first(nodes: list[object], view: Pod, order: list[str]) -> None:
    assert nearest(engine_of(*nodes), view) == order  # type: ignore[arg-type]


def test_a_shortage_that_eviction_can_mend_is_nearer_than_a_small_node() -> None:
    engine = engine_of(node("full", cpu=4), pod("running", cpu=4, on="full"), node("small", cpu="1900m"))
    assert nearest(engine, pod(cpu=2)) == ["full", "small"]


def test_all_that_is_in_the_way_on_a_node_is_reported() -> None:
    engine = engine_of(
        node("n1", cpu=1, memory="1Gi", zone="a", taints=["gpu=true:NoSchedule"], unschedulable=True),
        pod("proxy", on="n1", ports=["443"]),
    )
    demanding = pod(
        cpu=2, memory="4Gi", ports=["443"], node_labels={"disk": "ssd"}, near=[pods_like(ZONE, app="db")],
    )  # fmt: skip
    assert texts(engine, demanding, "n1") == [
        "uncordon it (kubectl uncordon n1)",
        "tolerate gpu=true:NoSchedule",
        "needs disk=ssd, has no disk",
        "host port TCP 443 is taken by default/proxy",
        "1 cpu more (the whole node has 1)",
        "3Gi memory more (the whole node has 1Gi)",
        "no pod matching app=db in zone a",
    ]


def test_a_node_that_would_take_the_pod_has_no_obstacles() -> None:
    engine = engine_of(node("n1"), node("n2", unschedulable=True))
    found = explained(engine, pod())
    assert (found.free_count, found.nearest, found.at("n1"), found.everywhere) == (1, ("n2",), (), ())


def test_obstacles_of_all_nodes_are_reported_separately() -> None:
    engine = engine_of(node("n1"), node("n2", cpu=1))
    found = explained(engine, pod(cpu=2, claims=["data"]))
    assert [obstacle.text for obstacle in found.everywhere] == ['persistentvolumeclaim "data" not found']
    assert (found.free_count, found.nearest) == (1, ("n2",))
    assert texts(engine, pod(cpu=2, claims=["data"]), "n2") == [
        'persistentvolumeclaim "data" not found',
        "1 cpu more (the whole node has 1)",
    ]


@pytest.mark.parametrize(
    ("priority", "found"),
    [
        pytest.param(0, ["1 cpu more (3 promised to default/nominated)"], id="of lower priority"),
        pytest.param(5, ["1 cpu more (3 promised to default/nominated)"], id="of the same priority"),
        pytest.param(9, [], id="of higher priority"),
    ],
)
def test_resources_that_is_promised_is_not_free_for_pods(priority: int, found: list[str]) -> None:
    engine = engine_of(node("n1", cpu=4), pod("nominated", cpu=3, priority=5, nominated="n1"))
    assert texts(engine, pod(cpu=2, priority=priority), "n1") == found


def test_promised_neighbours_count_as_if_they_were_there() -> None:
    engine = engine_of(
        node("n1", zone="a"), node("n2", zone="b"),
        pod("nominated", labels={"app": "web"}, priority=5, nominated="n1", ports=["80"]),
    )  # fmt: skip
    assert texts(engine, pod(ports=["80"]), "n1") == ["host port TCP 80 is taken by default/nominated"]
    # Which pods of a domain are promised only the rejection's own words say.
    apart = pod(apart=[pods_like(HOSTNAME, app="web")])
    assert texts(engine, apart, "n1") == ["didn't match pod anti-affinity rules"]
    spreading = pod(labels={"app": "web"}, spread=[spread(ZONE, app="web")])
    assert texts(engine, spreading, "n1") == ["didn't match pod topology spread constraints"]
    assert texts(engine, spreading, "n2") == []


def test_asking_changes_nothing() -> None:
    engine = engine_of(node("n1", cpu=4), pod("nominated", cpu=3, priority=5, nominated="n1", ports=["80"]))
    before = engine.columns.resources.used.copy()
    explained(engine, pod(cpu=2, ports=["80"]))
    assert (engine.columns.resources.used == before).all()
    assert not engine.columns.in_transaction
    assert engine.columns.pods_on[0] == {}


@pytest.mark.parametrize(
    ("tolerations", "found"),
    [
        pytest.param([], ["uncordon it (kubectl uncordon n1)"], id="the cordon's taint is the cordon"),
        pytest.param(
            ["node.kubernetes.io/unschedulable:NoSchedule"], [], id="it is tolerated"
        ),
    ],
)  # fmt: skip
def test_a_cordon_and_its_taint_are_one_obstacle(tolerations: list[str], found: list[str]) -> None:
    engine = engine_of(node("n1", unschedulable=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"]))
    view = pod(tolerations=tolerations)
    assert texts(engine, view, "n1") == found
    assert len(nearest(engine, view)) == len(found)


def test_a_taint_that_only_looks_like_the_cordons_is_reported() -> None:
    taints = ["node.kubernetes.io/unschedulable:NoExecute"]
    engine = engine_of(node("n1", unschedulable=True, taints=taints))
    view = pod(tolerations=["node.kubernetes.io/unschedulable:NoSchedule"])
    assert texts(engine, view, "n1") == ["tolerate node.kubernetes.io/unschedulable:NoExecute"]


# Plugins of users


class Noise(Filter[str]):
    """Rejects every node; explains as the pod's label `noise` demands."""

    name = "Noise"
    filter_reasons = (Reason("node(s) were noisy"),)
    obstacle_kind = ObstacleKind.NODE_LABEL

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def pre_filter(self, pod: PodInfo) -> Proceed[str]:
        return Proceed(pod.signature.labels.get("noise", ""))

    def filter(self, state: str, rows: Rows) -> Int64s:
        if state == "filter fails":
            raise LookupError("lost")
        return np.ones(length_of(rows), dtype=np.int64)


class LoudNoise(Noise):
    """The same, with an explanation and distances: the more letters a name has, the farther the node."""

    name = "LoudNoise"

    def explain(self, state: str, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        if state == "explain fails":
            raise LookupError("lost")
        if state == "explain with text":
            return ["too loud"]  # type: ignore[list-item]
        text = f"{len(self._columns.node_names[row])} dB less for {context.pod.name}"
        return [Obstacle(self.name, ObstacleKind.OTHER, text)]

    def distances(self, state: str, rows: Int64s, bits: Int64s, context: ExplainContext) -> Distances:
        if state == "distances fail":
            raise LookupError("lost")
        names = [self._columns.node_names[row] for row in rows.tolist()]
        places = len(rows) - (state == "distances too short")
        return Distances(np.ones(places, dtype=np.int64), np.array([float(len(name)) for name in names])[:places])


def engine_with(plugin: type[Noise]) -> Engine:
    written = with_profile(plugins={"multiPoint": {"enabled": plugins(plugin.name)}})
    return engine_of(node("aaa"), node("bb"), config=written, registry=Registry([*PLUGINS, plugin]))


@pytest.mark.parametrize(
    ("plugin", "noise", "order", "found"),
    [
        pytest.param(Noise, "", ["aaa", "bb"], ["were noisy"], id="without an explanation the reasons are shown"),
        pytest.param(LoudNoise, "", ["bb", "aaa"], ["3 dB less for p"], id="an explanation and distances of its own"),
        pytest.param(
            LoudNoise, "explain fails", ["bb", "aaa"],
            ['running "LoudNoise" filter plugin: LookupError: lost'], id="an explanation that fails",
        ),
        pytest.param(
            LoudNoise, "explain with text", ["bb", "aaa"],
            [
                'plugin "LoudNoise" returned an invalid result: found [\'too loud\'], expected a sequence of '
                "obstacles"
            ],
            id="an explanation of the wrong type",
        ),
        pytest.param(
            LoudNoise, "distances fail", ["aaa", "bb"], ["3 dB less for p"], id="distances that fail are the default"
        ),
        pytest.param(
            LoudNoise, "distances too short", ["aaa", "bb"], ["3 dB less for p"], id="distances for too few nodes"
        ),
        pytest.param(
            LoudNoise, "filter fails", [], ['running "LoudNoise" filter plugin: LookupError: lost'],
            id="a filter that fails",
        ),
    ],
)  # fmt: skip
def test_plugins_of_users_explain_too(plugin: type[Noise], noise: str, order: list[str], found: list[str]) -> None:
    engine = engine_with(plugin)
    view = pod("p", labels={"noise": noise})
    assert nearest(engine, view) == order
    assert [without_line(text) for text in texts(engine, view, "aaa")] == found
