"""Values of the downward API."""

from __future__ import annotations

import pytest

from mooring.kubelet.environment.downward_api import field_value, resource_value
from mooring.kubelet.environment.references import ContainerConfigError, NodeFacts
from mooring.kubelet.full_views import FieldSource, FullPod, ResourceSource
from tests.kubelet.full_pods import PLACE, whole
from tests.kubelet.harness import container, pod

POD = whole(
    pod(
        labels={"b": "2", "a": 'say "hi"\n'},
        annotations={"note": "é"},
        serviceAccountName="robot",
        containers=[
            container("main", resources={"limits": {"cpu": "1500m"}, "requests": {"cpu": "500m", "memory": "1Gi"}}),
            container("free"),
            container("huge", resources={"limits": {"hugepages-2Mi": "6Mi"}}),
        ],
        initContainers=[container("first", resources={"limits": {"memory": "1000"}})],
    )
)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels", 'a="say \\"hi\\"\\n"\nb="2"'),
        ("metadata.annotations", 'note="é"'),
        ("metadata.labels['b']", "2"),
        ("metadata.labels['c']", ""),
        ("metadata.annotations['note']", "é"),
        ("spec.nodeName", "node-0"),
        ("spec.serviceAccountName", "robot"),
        ("status.podIP", "10.0.0.7"),
        ("status.podIPs", "10.0.0.7"),
        ("status.hostIP", "172.16.0.1"),
        ("status.hostIPs", "172.16.0.1"),
    ],
)
def test_a_field_says_its_value(path: str, wanted: str) -> None:
    assert field_value(FieldSource(field_path=path), POD, PLACE) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        pytest.param(FieldSource(field_path="spec.volumes"), "field label not supported: spec.volumes", id="unknown"),
        pytest.param(
            FieldSource(field_path="spec.nodeName['a']"),
            "field label does not support subscript: spec.nodeName['a']",
            id="no map",
        ),
        pytest.param(FieldSource(api_version="v2", field_path="x"), "unsupported pod version: v2", id="version"),
    ],
)
def test_a_field_that_cannot_be_told_is_refused(source: FieldSource, wanted: str) -> None:
    with pytest.raises(ContainerConfigError) as refused:
        field_value(source, POD, PLACE)

    assert str(refused.value) == wanted


@pytest.mark.parametrize(
    ("name", "resource", "divisor", "wanted"),
    [
        pytest.param("main", "limits.cpu", 0, "2", id="cores are rounded up"),
        pytest.param("main", "limits.cpu", "1m", "1500", id="in thousandths"),
        pytest.param("main", "requests.cpu", "1", "1", id="half a core is one"),
        pytest.param("main", "requests.memory", 0, "1073741824", id="bytes"),
        pytest.param("main", "requests.memory", "1Mi", "1024", id="mebibytes"),
        pytest.param("main", "limits.memory", "1Gi", "8", id="without a limit: what the node has"),
        pytest.param("free", "limits.cpu", 0, "4", id="the same for cores"),
        pytest.param("free", "limits.ephemeral-storage", "1Gi", "10", id="and for the disk"),
        pytest.param("free", "requests.cpu", 0, "0", id="who requests nothing requests nothing"),
        pytest.param("huge", "limits.hugepages-2Mi", "2Mi", "3", id="huge pages"),
        pytest.param("free", "limits.hugepages-2Mi", "2Mi", "0", id="which the node does not lend"),
        pytest.param("first", "limits.memory", "1k", "1", id="of an init container"),
    ],
)
def test_a_resource_says_its_amount(name: str, resource: str, divisor: str | int, wanted: str) -> None:
    source = ResourceSource(container_name=name, resource=resource, divisor=divisor)

    assert resource_value(source, POD, None, PLACE) == wanted


def test_the_container_that_asks_is_meant_if_none_is_named() -> None:
    assert resource_value(ResourceSource(resource="limits.cpu"), POD, POD.spec.containers[0], PLACE) == "2"


def test_the_limit_of_the_pod_goes_before_what_the_node_has() -> None:
    limited = whole(pod(resources={"limits": {"cpu": "2"}}, containers=[container()]))

    assert resource_value(ResourceSource(resource="limits.cpu"), limited, limited.spec.containers[0], PLACE) == "2"


def test_without_a_node_there_is_no_limit() -> None:
    nowhere = NodeFacts("", "")

    assert resource_value(ResourceSource(resource="limits.cpu"), POD, POD.spec.containers[1], nowhere) == "0"


@pytest.mark.parametrize(
    ("pod", "source", "wanted"),
    [
        pytest.param(
            *(POD, ResourceSource(container_name="main", resource="limits.gpu")),
            "unsupported container resource : limits.gpu",
            id="unknown resource",
        ),
        pytest.param(
            *(POD, ResourceSource(container_name="nobody", resource="limits.cpu")),
            "container nobody not found",
            id="unknown container",
        ),
    ],
)
def test_an_amount_that_cannot_be_told_is_refused(pod: FullPod, source: ResourceSource, wanted: str) -> None:
    with pytest.raises(ContainerConfigError) as refused:
        resource_value(source, pod, None, PLACE)

    assert str(refused.value) == wanted
