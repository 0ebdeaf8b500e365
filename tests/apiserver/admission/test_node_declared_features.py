"""A bound pod changes only as its node can."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.apiserver.admission.node_declared_features import NodeDeclaredFeatureValidator
from mooring.client.errors import ForbiddenError
from tests.apiserver.admission.builders import Known, attempt, check, container, named, pod

ABLE = Known({NODE: [named("n", status={"declaredFeatures": ["InPlacePodVerticalScalingInitContainers"]})]})
PLAIN = Known({NODE: [named("n")]})


def made(generation: int, cpu: str, node: str = "n", **fields: Any) -> Document:
    one = pod(nodeName=node, initContainers=[container("i", {"cpu": cpu}, **fields)])
    one["metadata"]["generation"] = generation
    return one


@pytest.mark.parametrize(
    ("old", "new", "known"),
    [
        pytest.param(made(1, "1"), made(2, "2"), ABLE, id="the node can"),
        pytest.param(made(1, "1"), made(1, "2"), PLAIN, id="nothing was counted as a change"),
        pytest.param(made(1, "1", node=""), made(2, "2", node=""), PLAIN, id="there is no node yet"),
        pytest.param(
            made(1, "1", restartPolicy="Always"), made(2, "2", restartPolicy="Always"), PLAIN, id="sidecars can always"
        ),
    ],
)
def test_allowed(old: Document, new: Document, known: Known) -> None:
    check(NodeDeclaredFeatureValidator(), attempt(POD, new, old, subresource="resize"), known)


def test_the_node_cannot() -> None:
    with pytest.raises(ForbiddenError) as caught:
        check(NodeDeclaredFeatureValidator(), attempt(POD, made(2, "2"), made(1, "1"), subresource="resize"), PLAIN)
    assert caught.value.message == (
        'pods "p" is forbidden: pod update requires features InPlacePodVerticalScalingInitContainers '
        'which are not available on node "n"'
    )


def test_the_node_is_gone() -> None:
    with pytest.raises(ForbiddenError, match='node "n" not found'):
        check(NodeDeclaredFeatureValidator(), attempt(POD, made(2, "2"), made(1, "1")), Known())


def test_resources_of_the_whole_pod_need_a_feature_too() -> None:
    old, new = made(1, "1"), made(2, "1")
    old["spec"]["resources"], new["spec"]["resources"] = {"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}
    with pytest.raises(ForbiddenError, match="InPlacePodLevelResourcesVerticalScaling"):
        check(NodeDeclaredFeatureValidator(), attempt(POD, new, old), ABLE)
