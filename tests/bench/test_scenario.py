"""Scenarios and templates: streams of objects, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.scenario import Scenario, node_name
from bench.templates import Manifest, Template, TemplateError, Value, Variable, merged
from bench.workload import Size, read_workload, workload_names
from mooring.api.decode import decode_as
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.kit.entropy import Entropy

SMALL = Size(nodes=6, placed=12, pods=10)


def scenario(name: str, size: Size = SMALL) -> Scenario:
    return Scenario(read_workload(name), size)


def placed(name: str, count: int) -> list[Pod]:
    return [decode_as(Pod, item.raw) for item in islice(scenario(name).placed(), count)]


def measured(name: str, count: int) -> list[Pod]:
    return [decode_as(Pod, item.raw) for item in islice(scenario(name).measured(), count)]


def test_nodes_have_names_and_zones_in_turn() -> None:
    nodes = [decode_as(Node, item.raw) for item in scenario("plain").nodes()]
    assert [node.metadata.name for node in nodes] == [f"node-{number}" for number in range(6)]
    zones = [node.metadata.labels["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["zone-a", "zone-b", "zone-c"] * 2


def test_groups_take_turns_by_their_shares() -> None:
    nodes = [decode_as(Node, item.raw) for item in scenario("different", Size(nodes=20)).nodes()]
    assert [bool(node.spec.taints) for node in nodes] == ([False] * 9 + [True]) * 2


def test_placed_pods_lie_on_all_nodes_alike() -> None:
    assert Counter(pod.spec.node_name for pod in placed("plain", 12)) == {f"node-{number}": 2 for number in range(6)}


@pytest.mark.parametrize(
    ("serial", "only_every", "name"),
    [
        pytest.param(0, 1, "node-0", id="the first"),
        pytest.param(5, 1, "node-5", id="the last of a round"),
        pytest.param(6, 1, "node-1", id="the next round starts one node further"),
        pytest.param(3, 2, "node-2", id="on every second node: the second round"),
        pytest.param(4, 100, "node-0", id="there is always one node"),
    ],
)
def test_the_node_of_a_placed_pod(serial: int, only_every: int, name: str) -> None:
    assert node_name(6, serial, only_every) == name


def test_measured_pods_have_no_node() -> None:
    assert {pod.spec.node_name for pod in measured("plain", 10)} == {""}


def test_waiting_pods_are_other_pods() -> None:
    beside = scenario("loop-plain-beside-gated")
    waiting = [decode_as(Pod, item.raw) for item in islice(beside.waiting(), 10)]
    assert {len(pod.spec.scheduling_gates) for pod in waiting} == {1}
    others = {pod.key for pod in (*placed("loop-plain-beside-gated", 10), *measured("loop-plain-beside-gated", 10))}
    assert others.isdisjoint(pod.key for pod in waiting)


@pytest.mark.parametrize("name", workload_names())
def test_no_two_pods_share_a_name_or_a_uid(name: str) -> None:
    pods = [*placed(name, 40), *measured(name, 40)]
    assert len({pod.metadata.uid for pod in pods}) == len({pod.key for pod in pods}) == 80


@pytest.mark.parametrize("name", workload_names())
def test_a_scenario_can_be_had_again(name: str) -> None:
    first, second = (list(islice(scenario(name).measured(), 20)) for _ in range(2))
    assert first == second


def test_every_pod_is_different_from_all_before_it() -> None:
    pods = measured("different", 50)
    anonymous = {(msgspec.json.encode(pod.spec), msgspec.json.encode(pod.metadata.labels)) for pod in pods}
    assert len(anonymous) == 50
    assert len({pod.spec.containers[0].resources.requests["cpu"] for pod in pods}) > 10


def test_pods_are_of_realistic_size_and_have_the_default_tolerations() -> None:
    item = next(scenario("plain").placed())
    assert 3_000 < len(item.raw) < 6_000
    tolerated = {toleration.key for toleration in decode_as(Pod, item.raw).spec.tolerations}
    assert tolerated == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


def test_a_claiming_pod_comes_with_its_bound_claim_and_its_volume() -> None:
    item = next(scenario("volumes-bound").measured())
    pod = decode_as(Pod, item.raw)
    volume, claim = (decode_as(companion.kind, companion.raw) for companion in item.companions)
    assert isinstance(volume, PersistentVolume)
    assert isinstance(claim, PersistentVolumeClaim)
    used = pod.spec.volumes[0].persistent_volume_claim
    assert used is not None
    assert used.claim_name == claim.metadata.name
    assert claim.spec.volume_name == volume.metadata.name
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.uid == claim.metadata.uid


# --- Templates: holes are filled, numbers stay numbers, and the same seed gives the same objects ---------------------


VALUES: dict[str, Value] = {"index": 7, "zone": "zone-a"}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="xyz", max_size=2), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("manifest", "filled"),
    [
        pytest.param({"name": "node-{index}"}, {"name": "node-7"}, id="a hole in a text becomes text"),
        pytest.param({"weight": "{index}"}, {"weight": 7}, id="a text that is one hole becomes the value itself"),
        pytest.param({"at": "{zone}/{index}"}, {"at": "zone-a/7"}, id="a text may have several holes"),
        pytest.param({"a": [{"b": ["{zone}", 1]}]}, {"a": [{"b": ["zone-a", 1]}]}, id="holes lie at any depth"),
        pytest.param({"cpu": 4, "gpu": None}, {"cpu": 4, "gpu": None}, id="what has no hole stays"),
        pytest.param({"{index}": 1}, {"{index}": 1}, id="keys are never filled"),
    ],
)
def test_filling(manifest: Manifest, filled: Manifest) -> None:
    assert Template(manifest, tuple(VALUES)).fill(VALUES) == filled


def test_parts_without_holes_are_shared() -> None:
    template = Template({"name": "{index}", "spec": {"containers": []}}, ("index",))
    assert template.fill({"index": 1})["spec"] is template.fill({"index": 2})["spec"]


def test_filling_leaves_the_template_alone() -> None:
    template = Template({"labels": {"app": "app-{index}"}}, ("index",))
    assert [template.fill({"index": index})["labels"] for index in (1, 2)] == [{"app": "app-1"}, {"app": "app-2"}]


def test_an_unknown_variable_is_an_error_when_the_template_is_read() -> None:
    with pytest.raises(TemplateError, match=r"'node-\{nmae\}' asks for \{nmae\}, but there is only index, name"):
        Template({"name": "node-{nmae}"}, ("index", "name"))


@pytest.mark.parametrize(
    ("base", "patch", "result"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="new fields are added"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="mappings are merged"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null takes a field away"),
        pytest.param({}, {"a": None}, {}, id="null for a field that is not there changes nothing"),
        pytest.param({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}, id="a mapping replaces what is none"),
    ],
)
def test_merging(base: object, patch: object, result: object) -> None:
    assert merged(base, patch) == result


@given(st.dictionaries(st.text(alphabet="xyz", max_size=2), JSON, max_size=4))
def test_merging_nothing_changes_nothing(base: dict[str, object]) -> None:
    assert merged(base, {}) == base


@pytest.mark.parametrize(
    ("variable", "values"),
    [
        pytest.param(Variable(cycle=("a", "b")), ["a", "b", "a", "b", "a", "b"], id="a list in turn"),
        pytest.param(Variable(cycle=4), [0, 1, 2, 3, 0, 1], id="numbers in turn"),
        pytest.param(Variable(block=2), [0, 0, 1, 1, 2, 2], id="blocks of a size"),
        pytest.param(Variable(block_per_node=0.3), [0, 0, 0, 1, 1, 1], id="blocks by the number of nodes"),
        pytest.param(Variable(block_per_node=0.001), [0, 1, 2, 3, 4, 5], id="a block has at least one object"),
        pytest.param(Variable(choose=("only",)), ["only"] * 6, id="one of a list"),
        pytest.param(Variable(draw=(3, 3)), [3] * 6, id="both ends of a range are included"),
    ],
)
def test_values_follow_from_the_index(variable: Variable, values: list[Value]) -> None:
    value_at = variable.sequence(Entropy(1), node_count=10)
    assert [value_at(index) for index in range(6)] == values


def test_drawn_numbers_stay_in_their_range_and_can_be_had_again() -> None:
    draws = [[Variable(draw=(5, 9)).sequence(Entropy(3), 1)(index) for index in range(50)] for _ in range(2)]
    assert draws[0] == draws[1]
    assert set(draws[0]) <= {5, 6, 7, 8, 9}


@pytest.mark.parametrize(
    ("variable", "found"),
    [
        pytest.param(Variable(), "none", id="no rule"),
        pytest.param(Variable(cycle=2, block=3), "cycle, block", id="two rules"),
    ],
)
def test_a_variable_has_exactly_one_rule(variable: Variable, found: str) -> None:
    with pytest.raises(TemplateError, match=f"exactly one rule, found {found}"):
        variable.sequence(Entropy(1), node_count=1)
