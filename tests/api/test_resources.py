"""Requests of pods, computed in four ways, and allocatable resources of nodes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.errors import QuantityError
from mooring.api.resources import (
    CPU_MILLI_DEFAULT,
    MEMORY_DEFAULT,
    balanced_score_requests,
    fit_filter_requests,
    fit_score_requests,
    is_counted_resource,
    is_device_backed_resource,
    is_extended_resource,
    is_huge_page_resource,
    is_pod_level_resource,
    is_scalar_resource,
    node_accounting_requests,
    node_allocatable,
)
from mooring.api.views.meta import RawQuantity
from mooring.api.views.pod import Container, ContainerStatus, Pod
from tests.api.builders import container, node, pod, resized, sidecar

GI = 1 << 30


@pytest.mark.parametrize(
    ("pending", "requests"),
    [
        (pod(), {}),
        (pod(container()), {}),
        (pod(container(cpu="500m", memory="1Gi")), {"cpu": 500, "memory": GI}),
        (pod(container(cpu=1), container("b", cpu=0.5)), {"cpu": 1500}),
        (pod(container(cpu="0.5m"), container("b", cpu="0.5m")), {"cpu": 1}),
        (pod(container(memory="1500m")), {"memory": 2}),
        (pod(container(cpu="0")), {"cpu": 0}),
        (pod(container(cpu=1), init=[container("i", cpu=3)]), {"cpu": 3000}),
        (pod(container(cpu=3), init=[container("i", cpu=1), container("j", memory="5")]), {"cpu": 3000, "memory": 5}),
        (pod(container(cpu=1), init=[sidecar(cpu=2)]), {"cpu": 3000}),
        (pod(container(cpu=1), init=[sidecar(cpu=2), container("i", cpu=3)]), {"cpu": 5000}),
        (pod(container(cpu=1), init=[container("i", cpu=3), sidecar(cpu=2)]), {"cpu": 3000}),
        (pod(container(cpu=1), init=[sidecar("s", cpu=1), sidecar("t", cpu=1), container("i", cpu=2)]), {"cpu": 4000}),
        (pod(container(cpu=1), overhead={"cpu": "50m", "memory": 7}), {"cpu": 1050, "memory": 7}),
        (pod(container(cpu=1), as_a_whole={"cpu": 4}), {"cpu": 4000}),
        (pod(container(cpu=1, memory="9"), as_a_whole={"cpu": 4}), {"cpu": 4000, "memory": 9}),
        (pod(container(cpu=4), as_a_whole={"cpu": 1}, overhead={"cpu": 1}), {"cpu": 2000}),
        (pod(container(cpu=1), as_a_whole={"hugepages-2Mi": "2Mi"}), {"cpu": 1000, "hugepages-2Mi": 2 << 20}),
        (pod(container(cpu=1), as_a_whole={"example.com/gpu": 2}), {"cpu": 1000}),
        (
            pod(container(others={"example.com/gpu": 2, "ephemeral-storage": "1Gi", "pods": 3, "made-up": 1})),
            {"example.com/gpu": 2, "ephemeral-storage": GI},
        ),
        (pod(container(cpu=1), statuses=[resized({"cpu": 7}, {"cpu": 8})]), {"cpu": 1000}),
    ],
)
def test_requests_of_pending_pods(pending: Pod, requests: dict[str, int]) -> None:
    assert fit_filter_requests(pending) == requests


@pytest.mark.parametrize(
    ("running", "requests"),
    [
        (pod(container(cpu=1), as_a_whole={"cpu": 4}), {"cpu": 4000}),
        (pod(container(cpu=1), statuses=[resized({"cpu": 2}, {"cpu": "1500m"})]), {"cpu": 2000}),
        (pod(container(cpu=1), statuses=[resized({"cpu": 2}, {"cpu": 3})]), {"cpu": 3000}),
        (pod(container(cpu=4), statuses=[resized({"cpu": 2}, {"cpu": 3})]), {"cpu": 4000}),
        (
            pod(container(cpu=4), statuses=[resized({"cpu": 2}, {"cpu": 3})], resize_pending="Deferred"),
            {"cpu": 4000},
        ),
        (
            pod(container(cpu=4), statuses=[resized({"cpu": 2}, {"cpu": 3})], resize_pending="Infeasible"),
            {"cpu": 3000},
        ),
        (pod(container(cpu=1), statuses=[resized({"cpu": 9}, name="other")]), {"cpu": 1000}),
        (pod(container(cpu=1), statuses=[ContainerStatus(name="main", allocated_resources={"cpu": 9})]), {"cpu": 1000}),
        (
            pod(container(), init=[sidecar(cpu=1)], init_statuses=[resized({"cpu": 2}, name="sidecar")]),
            {"cpu": 2000},
        ),
        (
            pod(container(), init=[container("i", cpu=1)], init_statuses=[resized({"cpu": 2}, name="i")]),
            {"cpu": 1000},
        ),
        (pod(container(), as_a_whole={"cpu": 1}, status_as_a_whole={"cpu": 2}), {"cpu": 2000}),
        (
            pod(container(), as_a_whole={"cpu": 1}, status_as_a_whole={"cpu": 2}, promised_as_a_whole={"cpu": 3}),
            {"cpu": 3000},
        ),
        (
            pod(container(), as_a_whole={"cpu": 4}, status_as_a_whole={"cpu": 2}, resize_pending="Infeasible"),
            {"cpu": 2000},
        ),
        (
            pod(container(cpu=3), as_a_whole={"cpu": 4}, status_as_a_whole={}, resize_pending="Infeasible"),
            {"cpu": 0},
        ),
        (pod(container(cpu=1), status_as_a_whole={"cpu": 2}), {"cpu": 1000}),
    ],
)
def test_a_running_pod_counts_with_the_largest_of_requested_actual_and_allocated(
    running: Pod, requests: dict[str, int]
) -> None:
    assert node_accounting_requests(running).requests == requests
    assert balanced_score_requests(running) == requests


@pytest.mark.parametrize(
    ("running", "cpu_milli", "memory"),
    [
        (pod(container(cpu="500m", memory=5)), 500, 5),
        (pod(container()), CPU_MILLI_DEFAULT, MEMORY_DEFAULT),
        (pod(container(), container("b", cpu=1)), CPU_MILLI_DEFAULT + 1000, 2 * MEMORY_DEFAULT),
        (pod(container(cpu=0, memory=0)), 0, 0),
        (pod(container(cpu=1, memory=1), init=[container("i")]), 1000, MEMORY_DEFAULT),
        (pod(container(cpu=1, memory=1), init=[sidecar()]), 1000 + CPU_MILLI_DEFAULT, 1 + MEMORY_DEFAULT),
        (pod(container(), overhead={"cpu": "10m"}), CPU_MILLI_DEFAULT + 10, MEMORY_DEFAULT),
        (pod(container(), as_a_whole={"cpu": 2}), 2000, MEMORY_DEFAULT),
        (pod(container(), as_a_whole={"cpu": 2, "memory": 3}), 2000, 3),
        (pod(container(memory=4), container("b"), as_a_whole={"cpu": 2}), 2000, 4),
        (pod(container(), as_a_whole={"hugepages-2Mi": "2Mi"}), CPU_MILLI_DEFAULT, MEMORY_DEFAULT),
        (
            pod(container(cpu=1, memory=1), statuses=[resized({})], resize_pending="Infeasible"),
            CPU_MILLI_DEFAULT,
            MEMORY_DEFAULT,
        ),
        (pod(), 0, 0),
    ],
)
def test_a_container_without_requests_has_default_amounts(running: Pod, cpu_milli: int, memory: int) -> None:
    use = node_accounting_requests(running)
    assert (use.cpu_milli_non_zero, use.memory_non_zero) == (cpu_milli, memory)


@pytest.mark.parametrize(
    ("pending", "requests"),
    [
        (pod(container()), {"cpu": CPU_MILLI_DEFAULT, "memory": MEMORY_DEFAULT}),
        (pod(container(cpu=1)), {"cpu": 1000, "memory": MEMORY_DEFAULT}),
        (pod(container(cpu=1, memory=1), as_a_whole={"cpu": 4, "memory": 4}), {"cpu": 1000, "memory": 1}),
        (
            pod(container(cpu=1, memory=1), statuses=[resized({"cpu": 2})]),
            {"cpu": 1000, "memory": 1},
        ),
        (pod(container(cpu=1, memory=1, others={"storage": 3})), {"cpu": 1000, "memory": 1, "storage": 3}),
    ],
    ids=["silent", "half silent", "as a whole", "resized", "any name"],
)
def test_fit_score_requests(pending: Pod, requests: dict[str, int]) -> None:
    assert fit_score_requests(pending) == requests


def test_balanced_score_requests() -> None:
    assert balanced_score_requests(pod(container())) == {}
    assert balanced_score_requests(pod(container(cpu=1), as_a_whole={"cpu": 4})) == {"cpu": 4000}


def test_requests_of_equal_pods_are_shared() -> None:
    def built() -> Pod:
        return pod(container(cpu="123m"), init=[sidecar(cpu=1)], overhead={"cpu": "1m"})

    for requests_of in (node_accounting_requests, fit_filter_requests, fit_score_requests, balanced_score_requests):
        assert requests_of(built()) is requests_of(built())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pod(container(cpu=1), init=[container("i", cpu=2)]), pod(container(cpu=1), init=[sidecar("i", cpu=2)])),
        (pod(container(cpu=1), container("b", cpu=2)), pod(container(cpu=1), init=[container("b", cpu=2)])),
        (pod(container(cpu=1)), pod(container(cpu=1), overhead={"cpu": 1})),
        (pod(container(cpu=1)), pod(container(cpu=1), as_a_whole={"cpu": 2})),
        (
            pod(container("a", cpu=1), statuses=[resized({"cpu": 3}, name="a")]),
            pod(container("b", cpu=1), statuses=[resized({"cpu": 3}, name="a")]),
        ),
        (
            pod(container(cpu=4), statuses=[resized({"cpu": 3})]),
            pod(container(cpu=4), statuses=[resized({"cpu": 3})], resize_pending="Infeasible"),
        ),
    ],
    ids=["sidecar", "init", "overhead", "as a whole", "name", "infeasible"],
)
def test_requests_of_different_pods_differ(one: Pod, other: Pod) -> None:
    assert node_accounting_requests(one) != node_accounting_requests(other)


def test_an_invalid_quantity_is_an_error() -> None:
    with pytest.raises(QuantityError, match='"lots" is not a quantity'):
        fit_filter_requests(pod(container(cpu="lots")))


@pytest.mark.parametrize(
    ("allocatable", "amounts_of_node"),
    [
        ({}, {}),
        ({"cpu": "3920m", "memory": "1Gi", "pods": "110"}, {"cpu": 3920, "memory": GI, "pods": 110}),
        ({"example.com/gpu": 4, "hugepages-2Mi": 0}, {"example.com/gpu": 4, "hugepages-2Mi": 0}),
        ({"made-up": 4, "attachable-volumes-csi": 25}, {"attachable-volumes-csi": 25}),
    ],
)
def test_allocatable_of_a_node(allocatable: Mapping[str, RawQuantity], amounts_of_node: dict[str, int]) -> None:
    assert node_allocatable(node(allocatable=allocatable)) == amounts_of_node


cpu_millis = st.integers(0, 5000)
some_containers = st.lists(st.tuples(cpu_millis, st.booleans()), max_size=4)


@given(regular=st.lists(cpu_millis, min_size=1, max_size=3), initial=some_containers)
def test_requests_are_the_maximum_over_time(regular: list[int], initial: list[tuple[int, bool]]) -> None:
    def built(index: int, milli: int, stays: bool) -> Container:
        return (sidecar if stays else container)(f"i{index}", cpu=f"{milli}m")

    pending = pod(
        *(container(f"c{index}", cpu=f"{milli}m") for index, milli in enumerate(regular)),
        init=[built(index, *each) for index, each in enumerate(initial)],
    )
    staying = 0
    moments = []
    for milli, stays in initial:
        moments.append(staying + milli)
        staying += milli if stays else 0
    moments.append(staying + sum(regular))
    assert fit_filter_requests(pending) == {"cpu": max(moments)}


@given(said=st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 9), max_size=2))
def test_defaults_replace_only_missing_requests(said: dict[str, int]) -> None:
    pending = pod(container(others=said))
    expected = {"cpu": 1000 * said["cpu"] if "cpu" in said else CPU_MILLI_DEFAULT}
    expected["memory"] = said.get("memory", MEMORY_DEFAULT)
    assert fit_score_requests(pending) == expected


# --- Which resources the scheduler counts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "extended", "scalar", "counted"),
    [
        ("cpu", False, False, True),
        ("memory", False, False, True),
        ("ephemeral-storage", False, False, True),
        ("pods", False, False, False),
        ("storage", False, False, False),
        ("example.com/gpu", True, True, True),
        ("requests.example.com/gpu", False, False, False),
        ("Example.com/gpu", False, False, False),
        (f"example.com/{'x' * 64}", False, False, False),
        (f"{'x' * 250}.io/gpu", False, False, False),
        ("hugepages-2Mi", False, True, True),
        ("attachable-volumes-aws-ebs", False, True, True),
        ("kubernetes.io/batteries", False, True, True),
        ("deviceclass.resource.kubernetes.io/gpu", False, True, True),
    ],
)
def test_extended_scalar_and_counted_resources(name: str, extended: bool, scalar: bool, counted: bool) -> None:
    assert is_extended_resource(name) is extended
    assert is_scalar_resource(name) is scalar
    assert is_counted_resource(name) is counted


@pytest.mark.parametrize(
    ("name", "device_backed"),
    [
        ("example.com/gpu", True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("cpu", False),
        ("kubernetes.io/batteries", False),
    ],
)
def test_device_backed_resources(name: str, device_backed: bool) -> None:
    assert is_device_backed_resource(name) is device_backed


@pytest.mark.parametrize(
    ("name", "pod_level"),
    [
        ("cpu", True),
        ("memory", True),
        ("hugepages-1Gi", True),
        ("ephemeral-storage", False),
        ("example.com/gpu", False),
    ],
)
def test_pod_level_resources(name: str, pod_level: bool) -> None:
    assert is_pod_level_resource(name) is pod_level
    assert is_huge_page_resource(name) is name.startswith("hugepages-")
