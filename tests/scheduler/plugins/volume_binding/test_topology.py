"""Which nodes reach a volume, a class or a pool of capacity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.labels import NOTHING, compile_selector
from mooring.api.nodeselector import compile_lenient
from mooring.api.quantity import quantity_value
from mooring.api.views.meta import (
    ApiObject,
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySelectorTerm,
)
from mooring.api.views.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from mooring.scheduler.cache.arrays import Bools
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.framework.status import Code
from mooring.scheduler.plugins.volume_binding.conflicts import REASONS, BoundClaim, PodVolumeClaims, VolumeConflicts
from mooring.scheduler.plugins.volume_binding.matching import VolumeMatcher
from mooring.scheduler.plugins.volume_binding.topology import (
    CACHE_ENTRIES_MIN,
    Provisioner,
    SingleLabel,
    VolumeTopology,
    single_label_of,
    single_label_of_matcher,
)
from tests.api.builders import node_selector, selector, term
from tests.builders import HOSTNAME, ZONE, claim, node, persistent_volume
from tests.scheduler.harness import engine_of
from tests.storage_builders import allowing, capacity, csi_driver, from_nodes, storage_class, waiting

MANY = tuple(f"v{number}" for number in range(20))
NODES = (
    node("n1", zone="a", labels={"disk": "ssd"}),
    node("n2", zone="b", labels={"disk": "hdd", "size": "4"}),
    node("n3", zone="b", labels={"disk": "v7"}),
    node("n4"),
)


@pytest.mark.parametrize(
    ("affinity", "reached"),
    [
        pytest.param(from_nodes(ZONE, "b"), "n2 n3", id="one zone"),
        pytest.param(from_nodes(ZONE, "a", "b"), "n1 n2 n3", id="one of two zones"),
        pytest.param(from_nodes(ZONE, "nowhere"), "", id="a zone without nodes"),
        pytest.param(from_nodes("disk", *MANY), "n3", id="one of a great many values"),
        pytest.param(node_selector(term(f"{ZONE} In b", "disk NotIn hdd")), "n3", id="all of a term's requirements"),
        pytest.param(node_selector(term(f"{ZONE} In a"), term("size Gt 3")), "n1 n2", id="any of the terms"),
        pytest.param(node_selector(term(f"{ZONE} DoesNotExist")), "n4", id="a label that must not be there"),
        pytest.param(NodeSelector(), "", id="no terms at all"),
        pytest.param(node_selector(NodeSelectorTerm()), "", id="an empty term"),
        pytest.param(
            node_selector(term(f"{ZONE} Nonsense a"), term(f"{ZONE} In a")), "n1", id="a faulty term matches nothing"
        ),
        pytest.param(
            NodeSelector(
                node_selector_terms=(
                    NodeSelectorTerm(
                        match_fields=(NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",)),)
                    ),
                )
            ),
            "n1 n2 n3 n4",
            id="volumes do not know nodes by name",
        ),
    ],
)
def test_the_nodes_that_a_volume_selects(affinity: NodeSelector, reached: str) -> None:
    columns, topology = _cluster()
    assert _names(columns, topology.selected(affinity)) == reached.split()
    one_by_one = [
        node_view for node_view in NODES if compile_lenient(affinity).matches(node_view.metadata.labels, name="")
    ]
    assert reached.split() == [node_view.metadata.name for node_view in one_by_one]


@pytest.mark.parametrize(
    ("terms", "reached"),
    [
        pytest.param([], "n1 n2 n3 n4", id="no terms admit all nodes"),
        pytest.param([allowing(**{ZONE: ["a"]})], "n1", id="a zone"),
        pytest.param([allowing(**{ZONE: ["b"], "disk": ["hdd"]})], "n2", id="all labels of a term"),
        pytest.param([allowing(**{ZONE: ["a"]}), allowing(disk=["hdd"])], "n1 n2", id="any of the terms"),
        pytest.param([TopologySelectorTerm()], "", id="an empty term admits none"),
        pytest.param([allowing(**{"not a key": ["a"]}), allowing(disk=["ssd"])], "n1", id="a faulty term admits none"),
        pytest.param([allowing(**{ZONE: []})], "", id="a term without values is faulty"),
    ],
)
def test_the_nodes_that_a_class_allows(terms: Sequence[TopologySelectorTerm], reached: str) -> None:
    columns, topology = _cluster()
    assert _names(columns, topology.allowed(tuple(terms))) == reached.split()


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        pytest.param(selector(disk="ssd"), "n1", id="a label"),
        pytest.param(selector("disk Exists", "size DoesNotExist"), "n1 n3", id="expressions"),
        pytest.param(LabelSelector(), "n1 n2 n3 n4", id="everything"),
    ],
)
def test_the_nodes_with_matching_labels(wanted: LabelSelector, reached: str) -> None:
    columns, topology = _cluster()
    assert _names(columns, topology.labelled(compile_selector(wanted))) == reached.split()
    assert _names(columns, topology.labelled(NOTHING)) == []


def test_a_result_is_cached_until_a_node_changes() -> None:
    columns, topology = _cluster()
    first = topology.selected(from_nodes(ZONE, "a"))
    assert topology.selected(from_nodes(ZONE, "a")) is first
    assert not first.flags.writeable
    columns.put_node(node("n4", zone="a"))
    assert _names(columns, topology.selected(from_nodes(ZONE, "a"))) == ["n1", "n4"]
    columns.put_node(node("n5", zone="a"))
    assert _names(columns, topology.selected(from_nodes(ZONE, "a"))) == ["n1", "n4", "n5"]


def test_the_cache_of_results_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.scheduler.plugins.volume_binding.topology.CACHE_BYTES_MAX", 0)
    columns, topology = _cluster()
    for number in range(3 * CACHE_ENTRIES_MIN):
        assert _names(columns, topology.selected(from_nodes("disk", "ssd", str(number)))) == ["n1"]
    assert len(topology._cache) <= CACHE_ENTRIES_MIN


@pytest.mark.parametrize(
    ("affinity", "single_label"),
    [
        pytest.param(from_nodes(HOSTNAME, "n1"), SingleLabel(HOSTNAME, "n1"), id="one value of one label"),
        pytest.param(from_nodes(HOSTNAME, "n1", "n2"), None, id="two values"),
        pytest.param(node_selector(term("a In b", "c In d")), None, id="two labels"),
        pytest.param(node_selector(term("a In b"), term("a In c")), None, id="two terms"),
        pytest.param(node_selector(term("a Exists")), None, id="any value"),
        pytest.param(node_selector(term("a Nonsense b")), None, id="nonsense"),
        pytest.param(None, None, id="everywhere"),
    ],
)
def test_what_comes_down_to_one_label_value(affinity: NodeSelector | None, single_label: SingleLabel | None) -> None:
    assert single_label_of(affinity) == single_label


def test_label_selectors_may_come_down_to_one_value_too() -> None:
    assert single_label_of_matcher(compile_selector(selector(disk="ssd"))) == SingleLabel("disk", "ssd")
    assert single_label_of_matcher(compile_selector(selector("disk Exists"))) is None
    assert single_label_of_matcher(NOTHING) is None


def test_the_rows_of_a_label_value() -> None:
    columns, topology = _cluster()
    assert topology.rows_with_label(SingleLabel(ZONE, "b")).tolist() == [1, 2]
    assert topology.rows_with_label(SingleLabel(ZONE, "nowhere")).tolist() == []
    assert topology.rows_with_label(SingleLabel("disk", "ssd")).tolist() == [0]
    columns.put_node(node("n1", zone="b"))
    assert topology.rows_with_label(SingleLabel(ZONE, "b")).tolist() == [0, 1, 2]


def _cluster() -> tuple[Columns, VolumeTopology]:
    columns = Columns()
    for node_view in NODES:
        columns.put_node(node_view)
    return columns, VolumeTopology(columns)


def _names(columns: Columns, reached: Bools) -> list[str]:
    return [columns.node_names[row] for row in np.flatnonzero(reached)]


DRIVER = "disks.example"
ZONES = {"n1": "a", "n2": "a", "n3": "b"}
FAST = storage_class("fast", provisioner=DRIVER)
CLAIM = waiting("c", of_class="fast", size="5Gi")
A, B = selector(**{ZONE: "a"}), selector(**{ZONE: "b"})
EVERYWHERE = "n1 n2 n3"


@pytest.mark.parametrize(
    ("objects", "allowed"),
    [
        pytest.param([FAST], EVERYWHERE, id="a class that says nothing about topology"),
        pytest.param([storage_class("fast")], "", id="a class whose volumes are made by hand"),
        pytest.param([storage_class("fast", provisioner="")], "", id="a class without a provisioner"),
        pytest.param(
            [storage_class("fast", provisioner=DRIVER, allowed=[allowing(**{ZONE: ["b"]})])], "n3", id="one zone only"
        ),
    ],
)
def test_where_a_class_makes_volumes(objects: list[ApiObject], allowed: str) -> None:
    columns, provisioning = _provisioning(*objects)
    is_allowed, has_space = provisioning.of_claim(CLAIM)
    assert _node_names(columns, is_allowed) == allowed.split()
    assert _node_names(columns, has_space) == EVERYWHERE.split()


@pytest.mark.parametrize(
    ("objects", "claim", "with_space"),
    [
        pytest.param([], CLAIM, EVERYWHERE, id="no driver object: capacity is not looked at"),
        pytest.param([csi_driver(DRIVER, tracks_capacity=False)], CLAIM, EVERYWHERE, id="a driver that does not track"),
        pytest.param([csi_driver(DRIVER, tracks_capacity=None)], CLAIM, EVERYWHERE, id="nor one that does not say"),
        pytest.param([csi_driver(DRIVER)], CLAIM, "", id="a driver that tracks but reports nothing"),
        pytest.param(
            [csi_driver(DRIVER)], waiting("c", of_class="fast", size=None), EVERYWHERE, id="nothing asked for"
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="fast", size="10Gi", reached=A)], CLAIM, "n1 n2", id="in a zone"
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="fast", size="5Gi", reached=A)],
            CLAIM,
            "n1 n2",
            id="just enough",
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="fast", size="4Gi", reached=A)], CLAIM, "", id="too small"
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="slow", size="10Gi", reached=A)],
            CLAIM,
            "",
            id="another class's",
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="fast", size="10Gi", largest="1Gi", reached=A)],
            CLAIM,
            "",
            id="much, but no large volume",
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="fast", largest="8Gi", reached=A)],
            CLAIM,
            "n1 n2",
            id="large volumes",
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="fast", reached=A)], CLAIM, "", id="a size that is not reported"
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="fast", size="10Gi")], CLAIM, "", id="no topology, no access"
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="fast", size="10Gi", reached=LabelSelector())],
            CLAIM,
            EVERYWHERE,
            id="an empty topology, access for all",
        ),
        pytest.param(
            [csi_driver(DRIVER), capacity("x", of_class="fast", size="10Gi", reached=selector("zone Bogus a"))],
            CLAIM,
            "",
            id="a faulty topology, no access",
        ),
        pytest.param(
            [
                csi_driver(DRIVER),
                capacity("x", of_class="fast", size="1Gi", reached=LabelSelector()),
                capacity("y", of_class="fast", size="10Gi", reached=B),
            ],
            CLAIM,
            "n3",
            id="the largest that a node reaches decides",
        ),
    ],
)
def test_where_there_is_resources(objects: list[ApiObject], claim: PersistentVolumeClaim, with_space: str) -> None:
    columns, provisioning = _provisioning(FAST, *objects)
    assert _node_names(columns, provisioning.of_claim(claim).has_space) == with_space.split()


def test_capacities_and_nodes_may_change() -> None:
    columns, provisioning = _provisioning(
        FAST, csi_driver(DRIVER), capacity("x", of_class="fast", size="10Gi", reached=A)
    )
    store = columns.objects.of(CSIStorageCapacity)
    assert _node_names(columns, provisioning.of_claim(CLAIM).has_space) == ["n1", "n2"]
    store.put(capacity("x", of_class="fast", size="1Gi", reached=A))
    assert _node_names(columns, provisioning.of_claim(CLAIM).has_space) == []
    store.put(capacity("x", of_class="fast", size="9Gi", reached=B))
    assert _node_names(columns, provisioning.of_claim(CLAIM).has_space) == ["n3"]
    columns.put_node(node("n1", zone="b"))
    assert _node_names(columns, provisioning.of_claim(CLAIM).has_space) == ["n1", "n3"]
    store.put(capacity("x", of_class="slow", size="9Gi", reached=B))
    assert _node_names(columns, provisioning.of_claim(CLAIM).has_space) == []
    store.put(capacity("x", of_class="fast", size="9Gi", reached=B))
    store.remove("kube-system/x")
    assert _node_names(columns, provisioning.of_claim(CLAIM).has_space) == []


_TOPOLOGIES = st.sampled_from([A, B, None, LabelSelector(), selector(**{HOSTNAME: "n2"}), selector(f"{ZONE} Exists")])
_REPORTS = st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 9), _TOPOLOGIES, st.booleans()), max_size=12)


@given(_REPORTS)
def test_resources_is_what_asking_every_capacity_would_find(
    reports: list[tuple[str, int, LabelSelector | None, bool]],
) -> None:
    columns, provisioning = _provisioning(FAST, csi_driver(DRIVER))
    store = columns.objects.of(CSIStorageCapacity)
    for name, size, topology, goes in reports:
        if goes:
            store.remove(f"kube-system/{name}")
        else:
            store.put(capacity(name, of_class="fast", size=f"{size}Gi", reached=topology))
        expected = [
            zone
            for zone in ZONES
            if any(
                quantity_value(known.capacity or 0) >= quantity_value("5Gi")
                and compile_selector(known.node_topology).matches(columns.labels.of(columns.row_of[zone]))
                for known in store
            )
        ]
        assert _node_names(columns, provisioning.of_claim(CLAIM).has_space) == expected


def _provisioning(*objects: ApiObject) -> tuple[Columns, Provisioner]:
    columns = Columns()
    for name, zone in ZONES.items():
        columns.put_node(node(name, zone=zone))
    for view in objects:
        columns.objects.of(type(view)).put(view)
    return columns, Provisioner(columns, VolumeTopology(columns))


def _node_names(columns: Columns, rows: Bools) -> list[str]:
    return [columns.node_names[row] for row in np.flatnonzero(rows)]


# --- Which nodes volumes rule out, and which of several reasons is reported. The rest is tested with VolumeBinding ---


IN_A, IN_B, ANYWHERE = (
    persistent_volume("a", zone="a"),
    persistent_volume("b", zone="b"),
    persistent_volume("anywhere"),
)
FITS, ELSEWHERE, MISSING = 0, 1, 8


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        pytest.param([], [FITS, FITS], id="no volumes"),
        pytest.param([ANYWHERE], [FITS, FITS], id="one that is everywhere"),
        pytest.param([IN_A], [FITS, ELSEWHERE], id="one in a zone"),
        pytest.param([IN_A, IN_B], [ELSEWHERE, ELSEWHERE], id="two that are nowhere together"),
        pytest.param([None], [MISSING, MISSING], id="one that does not exist"),
        pytest.param([IN_A, None], [MISSING, ELSEWHERE], id="the first that has something against a node is reported"),
    ],
)
def test_node_affinity_of_bound_volumes(bound: list[PersistentVolume | None], said: list[int]) -> None:
    columns = engine_of(node("a1", zone="a"), node("b1", zone="b")).columns
    topology = VolumeTopology(columns)
    conflicts = VolumeConflicts(columns, topology, VolumeMatcher(columns, topology), Provisioner(columns, topology))
    claims = PodVolumeClaims(bound=[BoundClaim(claim("data"), volume) for volume in bound])
    assert conflicts.find(claims).tolist() == said


def test_each_error_has_a_bit_after_those_of_the_reasons() -> None:
    claims = PodVolumeClaims()
    first, second = claims.error_bit("broken"), claims.error_bit("worse")
    assert (first, second) == (1 << len(REASONS), 2 << len(REASONS))
    assert claims.error_bit("broken") == first
    assert all(reason.code is Code.UNRESOLVABLE for reason in REASONS)
