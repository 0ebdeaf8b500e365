"""Where a volume for a claim could be made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.labels import compile_selector
from mooring.api.quantity import quantity_value
from mooring.api.views.meta import ApiObject
from mooring.api.views.selectors import LabelSelector
from mooring.api.views.storage import CSIStorageCapacity, PersistentVolumeClaim
from mooring.scheduler.cache.arrays import Bools
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.plugins.volume_binding.provisioning import Provisioner
from mooring.scheduler.plugins.volume_binding.topology import VolumeTopology
from tests.api.builders import selector
from tests.builders import HOSTNAME, ZONE, node
from tests.storage_builders import allowing, capacity, csi_driver, storage_class, waiting

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
    columns, provisioning = _cluster(*objects)
    is_allowed, has_space = provisioning.of_claim(CLAIM)
    assert _names(columns, is_allowed) == allowed.split()
    assert _names(columns, has_space) == EVERYWHERE.split()


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
            [csi_driver(DRIVER), capacity("x", of_class="fast", reached=A)], CLAIM, "", id="a size that is not told"
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
def test_where_there_is_room(objects: list[ApiObject], claim: PersistentVolumeClaim, with_space: str) -> None:
    columns, provisioning = _cluster(FAST, *objects)
    assert _names(columns, provisioning.of_claim(claim).has_space) == with_space.split()


def test_capacities_and_nodes_may_change() -> None:
    columns, provisioning = _cluster(FAST, csi_driver(DRIVER), capacity("x", of_class="fast", size="10Gi", reached=A))
    store = columns.objects.of(CSIStorageCapacity)
    assert _names(columns, provisioning.of_claim(CLAIM).has_space) == ["n1", "n2"]
    store.put(capacity("x", of_class="fast", size="1Gi", reached=A))
    assert _names(columns, provisioning.of_claim(CLAIM).has_space) == []
    store.put(capacity("x", of_class="fast", size="9Gi", reached=B))
    assert _names(columns, provisioning.of_claim(CLAIM).has_space) == ["n3"]
    columns.put_node(node("n1", zone="b"))
    assert _names(columns, provisioning.of_claim(CLAIM).has_space) == ["n1", "n3"]
    store.put(capacity("x", of_class="slow", size="9Gi", reached=B))
    assert _names(columns, provisioning.of_claim(CLAIM).has_space) == []
    store.put(capacity("x", of_class="fast", size="9Gi", reached=B))
    store.remove("kube-system/x")
    assert _names(columns, provisioning.of_claim(CLAIM).has_space) == []


_TOPOLOGIES = st.sampled_from([A, B, None, LabelSelector(), selector(**{HOSTNAME: "n2"}), selector(f"{ZONE} Exists")])
_REPORTS = st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 9), _TOPOLOGIES, st.booleans()), max_size=12)


@given(_REPORTS)
def test_room_is_what_asking_every_capacity_would_find(
    reports: list[tuple[str, int, LabelSelector | None, bool]],
) -> None:
    columns, provisioning = _cluster(FAST, csi_driver(DRIVER))
    store = columns.objects.of(CSIStorageCapacity)
    for name, size, topology, goes in reports:
        if goes:
            store.remove(f"kube-system/{name}")
        else:
            store.put(capacity(name, of_class="fast", size=f"{size}Gi", reached=topology))
        expected = [
            each
            for each in ZONES
            if any(
                quantity_value(known.capacity or 0) >= quantity_value("5Gi")
                and compile_selector(known.node_topology).matches(columns.labels.of(columns.row_of[each]))
                for known in store
            )
        ]
        assert _names(columns, provisioning.of_claim(CLAIM).has_space) == expected


def _cluster(*objects: ApiObject) -> tuple[Columns, Provisioner]:
    columns = Columns()
    for name, zone in ZONES.items():
        columns.put_node(node(name, zone=zone))
    for view in objects:
        columns.objects.of(type(view)).put(view)
    return columns, Provisioner(columns, VolumeTopology(columns))


def _names(columns: Columns, rows: Bools) -> list[str]:
    return [columns.node_names[row] for row in np.flatnonzero(rows)]
