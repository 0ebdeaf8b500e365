from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert
from mooring.cli.manifests.checks import problems_of

POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def nested(path: str, value: object) -> Any:
    """`{"spec": {"containers": [value]}}` for `spec|containers|0`."""
    step, _, rest = path.partition("|")
    inner = nested(rest, value) if rest else value
    return [inner] if step == "0" else {step: inner}


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("v1 Pod", "spec|containers|0|resources|requests|cpu"),
        ("v1 Pod", "spec|containers|0|resources|limits|cpu"),
        ("v1 Pod", "spec|initContainers|0|resources|requests|cpu"),
        ("v1 Pod", "spec|resources|requests|cpu"),
        ("v1 Pod", "spec|overhead|cpu"),
        ("v1 Pod", "spec|volumes|0|ephemeral|volumeClaimTemplate|spec|resources|requests|storage"),
        ("v1 Pod", "status|containerStatuses|0|resources|requests|cpu"),
        ("v1 Pod", "status|containerStatuses|0|allocatedResources|cpu"),
        ("v1 Pod", "status|initContainerStatuses|0|allocatedResources|cpu"),
        ("v1 Pod", "status|resources|requests|cpu"),
        ("v1 Pod", "status|allocatedResources|cpu"),
        ("v1 Node", "status|allocatable|example.com/gpu"),
        ("v1 Node", "status|capacity|memory"),
        ("v1 PersistentVolume", "spec|capacity|storage"),
        ("v1 PersistentVolumeClaim", "spec|resources|requests|storage"),
        ("v1 PersistentVolumeClaim", "status|capacity|storage"),
        ("storage.k8s.io/v1 CSIStorageCapacity", "capacity"),
        ("storage.k8s.io/v1 CSIStorageCapacity", "maximumVolumeSize"),
    ],
)
def test_a_broken_quantity_is_found_wherever_it_stands(kind: str, path: str) -> None:
    api_version, name = kind.split(" ")
    view = convert({"apiVersion": api_version, "kind": name, "metadata": {"name": "x"}, **nested(path, "lots")})
    faults = list(problems_of(view))
    assert [fault[0] for fault in faults] == [path.replace("|0", "[0]").replace("|", ".")]
    assert faults[0][1].startswith('"lots" is not a quantity')


@pytest.mark.parametrize(
    ("plain", "fault"),
    [
        pytest.param({"metadata": {}}, ("metadata.name", "found no name; give the object one"), id="no name"),
        pytest.param(
            {"metadata": {"name": "p", "creationTimestamp": "today"}},
            ("metadata.creationTimestamp", "'today' is not a timestamp; expected one such as 2026-01-02T15:04:05Z"),
            id="a creation time that is none",
        ),
        pytest.param(
            {"status": {"startTime": "2026-13-01T00:00:00Z"}},
            ("status.startTime", "'2026-13-01T00:00:00Z' is not a timestamp: month must be in 1..12"),
            id="a start in a month that does not exist",
        ),
        pytest.param(
            {"spec": {"overhead": {"cpu": -1}}},
            ("spec.overhead.cpu", '"-1" is less than nothing; wanted 0 or more'),
            id="less than nothing",
        ),
    ],
)
def test_other_faults(plain: dict[str, Any], fault: tuple[str, str]) -> None:
    assert list(problems_of(convert({**POD, **plain}))) == [fault]


def test_what_is_right_has_no_faults() -> None:
    plain = {
        **POD,
        "metadata": {"generateName": "p-", "creationTimestamp": "2026-01-02T15:04:05Z"},
        "spec": {"containers": [{"resources": {"requests": {"cpu": 0.5, "memory": "1e9", "example.com/gpu": 2}}}]},
    }
    assert list(problems_of(convert(plain))) == []
