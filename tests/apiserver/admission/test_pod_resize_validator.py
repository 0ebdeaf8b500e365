"""PodResizeValidator: the resized pod must fit on its node.

NodeDeclaredFeatureValidator: the node must declare the features that the change needs.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.apiserver.admission.node_declared_features import NodeDeclaredFeatureValidator
from mooring.apiserver.admission.pod_resize_validator import PodResizeValidator
from mooring.client.errors import ForbiddenError, StatusCause
from tests.apiserver.admission.builders import Known, attempt, check, container, named, pod


def node(**labels: str) -> Document:
    return {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": {"cpu": "4", "memory": "4Gi"}}}


def resized(cpu: str, memory: str, generation: int = 2, **spec: Any) -> Document:
    made = pod(containers=[container("a", {"cpu": cpu, "memory": memory})], nodeName="n", **spec)
    made["metadata"]["generation"] = generation
    return made


@pytest.mark.parametrize(
    "generation", [pytest.param(2, id="the pod fits"), pytest.param(1, id="no change, the node is missing")]
)
def test_a_resize_that_fits_on_the_node_is_allowed(generation: int) -> None:
    known = Known({NODE: [node()]}) if generation == 2 else Known()
    made = attempt(POD, resized("4", "4Gi", generation), resized("1", "1Gi", 1), subresource="resize")
    check(PodResizeValidator(), made, known)


@pytest.mark.parametrize(
    ("nodes", "new", "why", "causes"),
    [
        pytest.param(
            [node()],
            resized("5", "5Gi"),
            "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000; "
            "memory, requested: 5368709120, allocatable: 4294967296",
            (StatusCause("NodeCapacity", "", ""),),
            id="too large",
        ),
        pytest.param(
            [node()],
            resized("4", "1Gi", overhead={"cpu": "1m"}),
            "node didn't have enough allocatable resources: cpu, requested: 4001, allocatable: 4000",
            (StatusCause("NodeCapacity", "", ""),),
            id="overhead is included",
        ),
        pytest.param(
            [node(**{"kubernetes.io/os": "windows"})],
            resized("1", "1Gi"),
            'pod resize is only supported on linux nodes, node "n" is "windows"',
            (StatusCause("UnsupportedPlatform", "", ""),),
            id="another operating system",
        ),
        pytest.param([], resized("1", "1Gi"), 'node "n" not found', (), id="no node"),
    ],
)
def test_a_resize_that_the_node_cannot_support_is_rejected(
    nodes: list[Document], new: Document, why: str, causes: tuple[StatusCause, ...]
) -> None:
    with pytest.raises(ForbiddenError) as caught:
        check(
            PodResizeValidator(), attempt(POD, new, resized("1", "1Gi", 1), subresource="resize"), Known({NODE: nodes})
        )
    assert caught.value.message == f'pods "p" is forbidden: {why}'
    assert caught.value.causes == causes


WITH_FEATURE = Known({NODE: [named("n", status={"declaredFeatures": ["InPlacePodVerticalScalingInitContainers"]})]})
WITHOUT_FEATURES = Known({NODE: [named("n")]})


def made(generation: int, cpu: str, node: str = "n", **fields: Any) -> Document:
    one = pod(nodeName=node, initContainers=[container("i", {"cpu": cpu}, **fields)])
    one["metadata"]["generation"] = generation
    return one


@pytest.mark.parametrize(
    ("old", "new", "known"),
    [
        pytest.param(made(1, "1"), made(2, "2"), WITH_FEATURE, id="the node has the feature"),
        pytest.param(made(1, "1"), made(1, "2"), WITHOUT_FEATURES, id="the generation did not change"),
        pytest.param(made(1, "1", node=""), made(2, "2", node=""), WITHOUT_FEATURES, id="not bound to a node"),
        pytest.param(
            made(1, "1", restartPolicy="Always"),
            made(2, "2", restartPolicy="Always"),
            WITHOUT_FEATURES,
            id="sidecars need no feature",
        ),
    ],
)
def test_changes_with_the_required_features_are_allowed(old: Document, new: Document, known: Known) -> None:
    check(NodeDeclaredFeatureValidator(), attempt(POD, new, old, subresource="resize"), known)


def test_a_change_without_the_required_feature_is_rejected() -> None:
    with pytest.raises(ForbiddenError) as caught:
        check(
            NodeDeclaredFeatureValidator(),
            attempt(POD, made(2, "2"), made(1, "1"), subresource="resize"),
            WITHOUT_FEATURES,
        )
    assert caught.value.message == (
        'pods "p" is forbidden: pod update requires features InPlacePodVerticalScalingInitContainers '
        'which are not available on node "n"'
    )


def test_a_change_of_a_pod_on_a_missing_node_is_rejected() -> None:
    with pytest.raises(ForbiddenError, match='node "n" not found'):
        check(NodeDeclaredFeatureValidator(), attempt(POD, made(2, "2"), made(1, "1")), Known())


def test_pod_level_resources_need_a_feature() -> None:
    old, new = made(1, "1"), made(2, "1")
    old["spec"]["resources"], new["spec"]["resources"] = {"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}
    with pytest.raises(ForbiddenError, match="InPlacePodLevelResourcesVerticalScaling"):
        check(NodeDeclaredFeatureValidator(), attempt(POD, new, old), WITH_FEATURE)
