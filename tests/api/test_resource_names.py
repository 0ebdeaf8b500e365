"""Which resources the scheduler counts."""

from __future__ import annotations

import pytest

from mooring.api.resource_names import (
    is_counted_resource,
    is_device_backed_resource,
    is_extended_resource,
    is_huge_page_resource,
    is_pod_level_resource,
    is_scalar_resource,
)


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
def test_what_sort_of_resource_a_name_means(name: str, extended: bool, scalar: bool, counted: bool) -> None:
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
def test_behind_which_resources_devices_may_stand(name: str, device_backed: bool) -> None:
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
def test_what_may_be_requested_for_a_pod_as_a_whole(name: str, pod_level: bool) -> None:
    assert is_pod_level_resource(name) is pod_level
    assert is_huge_page_resource(name) is name.startswith("hugepages-")
