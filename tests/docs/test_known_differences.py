"""What docs/parity.md says of differences from kube-scheduler, shown: each test is named there by its row.

A test that fails here means that the page is out of date: the behaviour may have become better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.devices import DeviceClass
from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import ConfigurationError, load_configuration
from mooring.scheduler.engine import Engine, UnknownProfileError
from mooring.scheduler.framework.plugin import Bind, Permit, PostBind, PreBind
from mooring.scheduler.framework.points import ExtensionPoint
from mooring.scheduler.plugins.catalogue import PLUGINS, default_registry
from mooring.scheduler.plugins.default_binder import DefaultBinder
from mooring.scheduler.plugins.priority_sort import PrioritySort
from tests.builders import ZONE, disk, node, pod, pods_like, spread
from tests.scheduler.config.builders import KUBERNETES, configuration, plugins, with_arguments, with_profile
from tests.scheduler.harness import decide, engine_of, plugin_of

# The queue, and pods that are not for everybody


def test_pods_of_higher_priority_come_first() -> None:
    engine = engine_of()
    waiting_since = [("late", 0, 20.0), ("early", 0, 10.0), ("urgent", 5, 30.0)]
    sort = plugin_of(engine, PrioritySort)
    in_order = sorted(waiting_since, key=lambda each: sort.queue_key(engine.record(pod(priority=each[1])), each[2]))
    assert [name for name, _, _ in in_order] == ["urgent", "early", "late"]


def test_a_pod_of_another_scheduler_is_an_error() -> None:
    with pytest.raises(UnknownProfileError, match="pod default/p asks for scheduler 'other'"):
        decide(engine_of(node()), pod(scheduler="other"))


# Chance


def test_a_tie_goes_where_the_seed_says() -> None:
    chosen = {seed: _where_five_pods_go(seed) for seed in range(20)}
    assert chosen == {seed: _where_five_pods_go(seed) for seed in range(20)}
    assert len(set(map(tuple, chosen.values()))) > 1


def _where_five_pods_go(seed: int) -> list[str | None]:
    engine = Engine(load_configuration(None), entropy=Entropy(seed))
    for name in "abcdef":
        engine.put(node(name))
    return [engine.decide(engine.record(pod(f"p{number}"))).node_name for number in range(5)]


@pytest.mark.parametrize(("offset", "nominated"), [(0, "a"), (1, "b"), (2, "c")])
def test_preemption_starts_where_the_seed_says(offset: int, nominated: str) -> None:
    one_candidate = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    config = load_configuration(with_arguments("DefaultPreemption", one_candidate))
    engine = Engine(config, entropy=Loaded(offset))
    for name in ("c", "a", "b"):
        engine.put(node(name, cpu=1))
        engine.put(pod(f"on-{name}", cpu=1, on=name))
    plan = decide(engine, pod(cpu=1, priority=1)).preemption
    assert plan is not None
    assert plan.node_name == nominated


class Loaded(Entropy):
    """A die that always falls on the same side."""

    def __init__(self, side: int) -> None:
        super().__init__(seed=0)
        self._side = side

    def integer_below(self, limit: int) -> int:
        return self._side % limit

    def fork(self, name: str) -> Loaded:
        return self


# What is read, and does not count yet


@pytest.mark.parametrize("percentage", [None, 1, 100])
def test_every_node_is_scored_whatever_the_percentage(percentage: int | None) -> None:
    nodes = [node(f"n{number:03}") for number in range(300)]
    decision = decide(engine_of(*nodes, config=configuration(percentageOfNodesToScore=percentage)), pod())
    assert len(decision.scores) == 300


def test_extenders_are_not_asked() -> None:
    nobody_listens_there = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}
    config = configuration(extenders=[nobody_listens_there])
    assert decide(engine_of(node("n1"), config=config), pod()).node_name == "n1"


def test_points_that_nobody_asks_yet() -> None:
    unasked = (Permit, PreBind, Bind, PostBind)
    assert [plugin for plugin in PLUGINS if issubclass(plugin, unasked)] == [DefaultBinder]
    engine = engine_of(node("n1"))
    assert engine.assume(decide(engine, pod())) is None  # there is no API server, and nobody misses it


# Devices and groups


def test_a_pod_with_claims_is_refused_in_words() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    view = convert_as(
        Pod, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], "resourceClaims": claims}}
    )
    message = decide(engine_of(node()), view).message or ""
    assert "pod has resource claims, and devices are not allocated by this scheduler yet" in message


def test_resources_behind_a_device_class_are_plain_resources() -> None:
    stands_behind = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    engine = engine_of(node(), convert_as(DeviceClass, stands_behind))
    decision = decide(engine, pod(others={"example.com/gpu": 1}))
    assert (decision.message or "").startswith("0/1 nodes are available: 1 Insufficient example.com/gpu.")


@pytest.mark.parametrize("name", ["GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"])
def test_plugins_of_gates_that_are_off_do_not_exist(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f'"{name}" does not exist'):
        engine_of(config=with_profile(plugins={"multiPoint": {"enabled": plugins(name)}}))


# Where plugins can be enabled


def test_where_kubernetes_plugins_take_part_and_ours_do_not() -> None:
    ours = default_registry().implements
    pairs = [(plugin.name, point) for plugin in PLUGINS for point in ExtensionPoint]
    assert [
        f"{name} at {point.config_field}" for name, point in pairs if KUBERNETES(name, point) != ours(name, point)
    ] == [
        "VolumeBinding at preBind",
        "DynamicResources at preEnqueue",
        "DynamicResources at reserve",
        "DynamicResources at preBind",
        "DefaultPreemption at preEnqueue",
    ]
    for name, point in (("VolumeBinding", "preBind"), ("NodeResourcesFit", "placementScore")):
        with pytest.raises(ConfigurationError, match=f'plugin "{name}" does not extend'):
            engine_of(config=with_profile(plugins={point: {"enabled": plugins(name)}}))


@pytest.mark.parametrize(
    ("name", "cluster", "view"),
    [
        pytest.param("NodeResourcesFit", [node(cpu=1)], pod(cpu=2), id="a filter that reads rows"),
        pytest.param("NodePorts", [node(), pod("o", ports=["80"], on="n1")], pod(ports=["80"]), id="another one"),
        pytest.param("PodTopologySpread", [node()], pod(spread=[spread("rack")]), id="spreading"),
        pytest.param("InterPodAffinity", [node()], pod(near=[pods_like(ZONE, app="web")]), id="affinity"),
        pytest.param(
            "VolumeRestrictions",
            [node(), pod("o", volumes=[disk("d")], on="n1")],
            pod(volumes=[disk("d")]),
            id="volumes",
        ),
    ],
)
def test_a_filter_whose_pre_filter_is_disabled_is_asked_all_the_same(
    name: str, cluster: Sequence[ApiObject], view: Pod
) -> None:
    without: dict[str, Any] = with_profile(plugins={"preFilter": {"disabled": plugins(name)}})
    assert decide(engine_of(*cluster), view).node_name is None
    assert decide(engine_of(*cluster, config=without), view).node_name is None


# Limits


def test_a_pod_with_too_many_resources_is_refused_in_words() -> None:
    resources = {f"example.com/r{number}": 1 for number in range(61)}
    message = decide(engine_of(node()), pod(others=resources)).message or ""
    assert "pod requests 61 different resources, more than can be told apart" in message
