"""A pod is not resized beyond its node."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.apiserver.admission.pod_resize_validator import PodResizeValidator
from mooring.client.errors import Cause, ForbiddenError
from tests.apiserver.admission.builders import Known, attempt, check, container, pod


def node(**labels: str) -> Document:
    return {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": {"cpu": "4", "memory": "4Gi"}}}


def resized(cpu: str, memory: str, generation: int = 2, **spec: Any) -> Document:
    made = pod(containers=[container("a", {"cpu": cpu, "memory": memory})], nodeName="n", **spec)
    made["metadata"]["generation"] = generation
    return made


@pytest.mark.parametrize(
    "generation", [pytest.param(2, id="it fits"), pytest.param(1, id="nothing changed, and the node may be gone")]
)
def test_allowed(generation: int) -> None:
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
            (Cause("NodeCapacity", "", ""),),
            id="too large",
        ),
        pytest.param(
            [node()],
            resized("4", "1Gi", overhead={"cpu": "1m"}),
            "node didn't have enough allocatable resources: cpu, requested: 4001, allocatable: 4000",
            (Cause("NodeCapacity", "", ""),),
            id="overhead counts",
        ),
        pytest.param(
            [node(**{"kubernetes.io/os": "windows"})],
            resized("1", "1Gi"),
            'pod resize is only supported on linux nodes, node "n" is "windows"',
            (Cause("UnsupportedPlatform", "", ""),),
            id="another system",
        ),
        pytest.param([], resized("1", "1Gi"), 'node "n" not found', (), id="no node"),
    ],
)
def test_refused(nodes: list[Document], new: Document, why: str, causes: tuple[Cause, ...]) -> None:
    with pytest.raises(ForbiddenError) as caught:
        check(
            PodResizeValidator(), attempt(POD, new, resized("1", "1Gi", 1), subresource="resize"), Known({NODE: nodes})
        )
    assert caught.value.message == f'pods "p" is forbidden: {why}'
    assert caught.value.causes == causes
