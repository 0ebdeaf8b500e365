"""What pods request and may use, as Prometheus reads it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.api.views.pod import Container, Pod, ResourceRequirements
from mooring.scheduler.reporting.pod_resources import pod_resources_text, unit_of
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


def container(*, requests: dict[str, str], limits: dict[str, str], **fields: str) -> Container:
    return Container(name="c", resources=ResourceRequirements(requests=requests, limits=limits), **fields)  # type: ignore[arg-type]


def made(*containers: Container, init: tuple[Container, ...] = (), overhead: dict[str, str] | None = None) -> Pod:
    view = pod("web", on="n1")
    spec = replace(view.spec, containers=containers, init_containers=init, overhead=overhead or {}, priority=5)
    return replace(view, spec=spec)


@pytest.mark.parametrize(
    ("view", "requests", "limits"),
    [
        pytest.param(
            made(container(requests={"cpu": "500m", "memory": "1Gi"}, limits={"cpu": "2"})),
            {"cpu": 0.5, "memory": 2**30},
            {"cpu": 2.0},
            id="what one container says",
        ),
        pytest.param(
            made(
                container(requests={"cpu": "1"}, limits={"cpu": "1"}),
                init=(container(requests={"cpu": "3"}, limits={"cpu": "4"}),),
            ),
            {"cpu": 3.0},
            {"cpu": 4.0},
            id="the most at any time",
        ),
        pytest.param(
            made(container(requests={"cpu": "1"}, limits={"cpu": "1"}), overhead={"cpu": "250m", "memory": "1Gi"}),
            {"cpu": 1.25, "memory": 2**30},
            {"cpu": 1.25},
            id="overhead counts for limits only where there is one",
        ),
        pytest.param(made(container(requests={"cpu": "0"}, limits={})), {}, {}, id="nothing"),
    ],
)
def test_amounts(view: Pod, requests: dict[str, float], limits: dict[str, float]) -> None:
    engine = engine_of(node("n1"), view)
    said = pod_resources_text(engine.columns.pods.values()).decode()
    found: dict[str, dict[str, float]] = {"request": {}, "limit": {}}
    for line in said.splitlines():
        if line.startswith("kube_pod_resource_"):
            head, _, value = line.rpartition(" ")
            kind = head.removeprefix("kube_pod_resource_").partition("{")[0]
            found[kind][head.partition('resource="')[2].partition('"')[0]] = float(value)
            assert 'namespace="default",node="n1",pod="web",priority="5"' in head
    assert found == {"request": requests, "limit": limits}


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-csi-x", "integer"),
        ("example.com/gpu", ""),
    ],
)
def test_units(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit
