"""Resource columns: indexes, request vectors, allocatable amounts."""

from __future__ import annotations

import pytest

from mooring.scheduler.cache.pods import host_ports
from mooring.scheduler.cache.resources import (
    CPU,
    CPU_NON_ZERO,
    EPHEMERAL_STORAGE,
    MEMORY,
    MEMORY_NON_ZERO,
    PODS,
    HostPort,
    PortColumns,
    ResourceColumns,
)
from tests.builders import pod

GPU, FPGA = "example.com/gpu", "example.com/fpga"


@pytest.mark.parametrize(
    ("name", "index"), [("cpu", CPU), ("memory", MEMORY), ("ephemeral-storage", EPHEMERAL_STORAGE), ("pods", PODS)]
)
def test_fixed_indexes_of_resources(name: str, index: int) -> None:
    assert ResourceColumns(4).index_of(name) == index


def test_other_resources_get_a_line_when_they_are_first_seen() -> None:
    resources = ResourceColumns(4)
    gpu, fpga = resources.index_of(GPU), resources.index_of(FPGA)
    assert resources.index_of(GPU) == gpu != fpga == resources.index_of(FPGA)
    assert [resources.names[gpu], resources.names[fpga]] == [GPU, FPGA]
    assert resources.used.shape == resources.allocatable.shape == (8, 4)


def test_a_vector_is_what_one_pod_adds() -> None:
    resources = ResourceColumns(4)
    vector = resources.vector({"cpu": 250, GPU: 2}, cpu_non_zero_milli=250, memory_non_zero=200 << 20)
    assert vector.tolist() == [250, 0, 0, 1, 250, 200 << 20, 2]


def test_a_vector_ends_with_its_last_resource() -> None:
    resources = ResourceColumns(4)
    resources.index_of(GPU)
    vector = resources.vector({}, cpu_non_zero_milli=100, memory_non_zero=7)
    assert vector.tolist() == [0, 0, 0, 1, 100, 7]


def test_what_a_node_no_longer_offers_is_gone() -> None:
    resources = ResourceColumns(4)
    resources.set_allocatable(2, {"cpu": 4000, "memory": 8, "pods": 110, GPU: 1})
    resources.set_allocatable(2, {"cpu": 2000, "pods": 110})
    assert resources.allocatable[:, 2].tolist() == [2000, 0, 0, 110, 2000, 0, 0]


def test_scores_share_the_capacity_of_filters() -> None:
    resources = ResourceColumns(4)
    resources.set_allocatable(1, {"cpu": 4000, "memory": 8})
    assert resources.allocatable[[CPU_NON_ZERO, MEMORY_NON_ZERO], 1].tolist() == [4000, 8]


def test_a_cleared_row_offers_and_uses_nothing() -> None:
    resources = ResourceColumns(4)
    resources.set_allocatable(1, {"cpu": 4000})
    resources.used[CPU, 1] = 100
    resources.clear(1)
    assert not resources.allocatable[:, 1].any()
    assert not resources.used[:, 1].any()


def test_growing_keeps_all_lines() -> None:
    resources = ResourceColumns(4)
    resources.set_allocatable(3, {GPU: 5})
    resources.grow(100)
    assert resources.allocatable[resources.index_of(GPU), 3] == 5
    assert resources.used.shape[1] >= 100


def ports(*texts: str) -> tuple[HostPort, ...]:
    return host_ports(pod(ports=texts).spec)


@pytest.mark.parametrize(
    ("taken", "wanted", "is_conflict"),
    [
        ("80", "80", True),
        ("80", "81", False),
        ("80", "80/UDP", False),
        ("80", "127.0.0.1:80", True),
        ("127.0.0.1:80", "80", True),
        ("127.0.0.1:80", "127.0.0.1:80", True),
        ("127.0.0.1:80", "10.0.0.1:80", False),
        ("0.0.0.0:80", "10.0.0.1:80", True),
        ("10.0.0.1:53/UDP", "10.0.0.1:53/UDP", True),
        ("10.0.0.1:53/UDP", "10.0.0.1:53/TCP", False),
    ],
)
def test_pods_with_conflicting_disks(taken: str, wanted: str, is_conflict: bool) -> None:
    columns = PortColumns()
    columns.take(2, ports(taken))
    assert columns.conflicts(ports(wanted), height=4).tolist() == [False, False, is_conflict, False]
    assert [columns.conflicts_at(ports(wanted), row) for row in range(4)] == [False, False, is_conflict, False]


def test_any_of_several_ports_is_enough() -> None:
    columns = PortColumns()
    columns.take(0, ports("80"))
    columns.take(1, ports("443"))
    assert columns.conflicts(ports("443", "80"), height=3).tolist() == [True, True, False]


def test_a_freed_port_is_free() -> None:
    columns = PortColumns()
    columns.take(0, ports("80", "443"))
    columns.free(0, ports("80"))
    assert not columns.conflicts_at(ports("80"), 0)
    assert columns.conflicts_at(ports("443"), 0)
    columns.free(0, ports("80"))
    columns.free(1, ports("443"))
    assert columns.conflicts_at(ports("443"), 0), "what a row does not hold cannot be freed there"


def test_a_port_that_two_pods_hold_is_free_when_the_first_of_them_goes() -> None:
    columns = PortColumns()
    columns.take(0, ports("80"))
    columns.take(0, ports("80"))
    columns.free(0, ports("80"))
    assert not columns.conflicts_at(ports("80"), 0), "kube-scheduler v1.36 does not count them either"


def test_which_exact_ports_are_taken() -> None:
    columns = PortColumns()
    columns.take(0, ports("80", "127.0.0.1:443"))
    assert columns.taken_of(0, ports("80", "443", "127.0.0.1:443")) == ports("80", "127.0.0.1:443")
    assert columns.taken_of(1, ports("80")) == ()
