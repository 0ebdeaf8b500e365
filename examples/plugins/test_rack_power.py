"""Tests of RackPower, for one node at a time and for all nodes at once.

A test of a plugin needs only the installed package: an engine, a few objects as in manifests, and a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config import ConfigurationError, load_configuration
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.loading import enabled_if_unmentioned, load_plugins

HERE = Path(__file__).parent


def engine_with(file: str, spare_watts: Mapping[str, str | None], arguments: object = None) -> Engine:
    """An engine that knows one plugin more, and a node for each of these measurements."""
    registry = default_registry()
    plugins = load_plugins(HERE / file)
    for plugin in plugins:
        registry.register(plugin)
    enabled = plugins[0].name
    written = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": enabled, "args": arguments}] if arguments is not None else []}],
    }
    configuration = enabled_if_unmentioned(load_configuration(written), [enabled])
    engine = Engine(configuration, entropy=Entropy(1), registry=registry)
    for name, watts in spare_watts.items():
        engine.put(node(name, watts))
    return engine


def node(name: str, spare_watts: str | None) -> Node:
    """A node on the rack that its name begins with."""
    metadata = {
        "name": name,
        "labels": {"topology.example.com/rack": name[0]},
        "annotations": {"power.example.com/spare-watts": spare_watts} if spare_watts is not None else {},
    }
    return convert_as(
        Node, {"metadata": metadata, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 99}}}
    )


def decide(engine: Engine, draws_watts: str | None) -> Decision:
    """The decision about a pod that draws so much."""
    labels = {"power.example.com/watts": draws_watts} if draws_watts is not None else {}
    pod = convert_as(Pod, {"metadata": {"name": "p", "namespace": "default", "labels": labels}})
    return engine.decide(engine.record(pod), in_full=True)


def refused(decision: Decision) -> dict[str, str]:
    """The nodes that refuse, and why."""
    return {node: ", ".join(status.reasons) for node, status in decision.node_to_status.items() if status is not None}


@pytest.mark.parametrize(
    ("spare_watts", "draws_watts", "reserve_watts", "chosen", "rejections"),
    [
        pytest.param({"a1": "100", "b1": "500"}, "90", 0, "b1", {}, id="most power to spare"),
        pytest.param(
            {"a1": "100", "b1": "500"}, "200", 0, "b1", {"a1": "node(s) lacked 100 W on rack a"}, id="enough power"
        ),
        pytest.param({"a1": "100"}, "100", 0, "a1", {}, id="just enough"),
        pytest.param(
            {"a1": "100"}, "100", 1, None, {"a1": "node(s) lacked 1 W on rack a"}, id="nothing is left of the reserve"
        ),
        pytest.param(
            {"a1": None, "b1": "50"}, "50", 0, "b1", {"a1": "node(s) lacked 50 W on rack a"}, id="only what is measured"
        ),
        pytest.param({"a1": "0"}, None, 0, "a1", {}, id="whatever there is, if the pod draws nothing"),
    ],
)
def test_a_pod_finds(
    spare_watts: dict[str, str | None],
    draws_watts: str | None,
    reserve_watts: int,
    chosen: str | None,
    rejections: dict[str, str],
) -> None:
    decision = decide(engine_with("rack_power.py", spare_watts, {"reserveWatts": reserve_watts}), draws_watts)
    assert (decision.node_name, refused(decision)) == (chosen, rejections)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param({"reserveWatts": -5}, "Expected `int` >= 0 - at `$.reserveWatts`", id="less than nothing"),
        pytest.param({"reserveWatts": "50"}, "Expected `int`, got `str` - at `$.reserveWatts`", id="a text"),
        pytest.param({"reserve": 50}, "Object contains unknown field `reserve`", id="a misspelt name"),
    ],
)
def test_arguments_are_refused(arguments: object, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        engine_with("rack_power.py", {}, arguments)
    assert str(caught.value) == f'initializing plugin "RackPower": {complaint}'


def test_arguments_of_the_plugin_for_all_nodes_are_refused_likewise() -> None:
    with pytest.raises(ConfigurationError) as caught:
        engine_with("rack_power_columns.py", {}, {"reserve": 50})
    assert str(caught.value) == 'initializing plugin "RackPowerColumns": Object contains unknown field `reserve`'


def test_a_broken_meter_fails_the_pods_that_need_it_and_no_others() -> None:
    engine = engine_with("rack_power.py", {"a1": "many"})
    failed = decide(engine, "90")
    assert failed.error == "filter"
    assert failed.message is not None
    assert "pod default/p on node a1: ValueError: invalid literal for int()" in failed.message
    assert decide(engine, None).node_name == "a1"


@given(
    spare_watts=st.lists(st.none() | st.integers(0, 300), min_size=1, max_size=6),
    draws_watts=st.none() | st.integers(1, 250),
    reserve_watts=st.integers(0, 60),
)
def test_the_rule_for_all_nodes_at_once_says_the_same(
    spare_watts: list[int | None], draws_watts: int | None, reserve_watts: int
) -> None:
    measured = {f"n{i}": str(watts) if watts is not None else None for i, watts in enumerate(spare_watts)}
    draws = str(draws_watts) if draws_watts is not None else None
    arguments = {"reserveWatts": reserve_watts}
    one, all_at_once = (
        decide(engine_with(file, measured, arguments), draws) for file in ("rack_power.py", "rack_power_columns.py")
    )
    assert refused(one).keys() == refused(all_at_once).keys()
    assert {node: scores["total"] for node, scores in one.scores.items()} == {
        node: scores["total"] for node, scores in all_at_once.scores.items()
    }


def test_the_rule_for_all_nodes_at_once_follows_its_nodes() -> None:
    engine = engine_with("rack_power_columns.py", {"a1": "100", "b1": "500"})
    assert decide(engine, "200").node_name == "b1"
    engine.remove(node("b1", "500"))
    engine.put(node("a1", "150"))
    engine.put(node("c1", "300"))
    decision = decide(engine, "200")
    assert (decision.node_name, list(refused(decision))) == ("c1", ["a1"])


def test_a_rule_fits_on_one_screen() -> None:
    assert len((HERE / "rack_power.py").read_text().splitlines()) < 60
