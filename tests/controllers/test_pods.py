"""What controllers ask of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.views.meta import Condition, ObjectMeta
from mooring.api.views.pod import Pod, PodStatus
from mooring.controllers.conditions import disruption_condition
from mooring.controllers.pods import (
    available_in_s,
    claim_keys,
    controller_index,
    is_active,
    is_available,
    is_finished,
    is_ready,
    is_terminating,
    next_availability_s,
    node_index,
    orphan_key,
    orphan_label_index,
)
from tests.controllers.builders import NOW_S, pod_view
from tests.controllers.network_documents import backend_view


@pytest.mark.parametrize(
    ("parts", "states"),
    [
        pytest.param({}, (True, False, False), id="running"),
        pytest.param({"phase": "Pending"}, (True, False, False), id="pending"),
        pytest.param({"going": True}, (False, True, False), id="going"),
        pytest.param({"phase": "Failed"}, (False, False, True), id="failed"),
        pytest.param({"phase": "Succeeded", "going": True}, (False, False, True), id="finished and going"),
    ],
)
def test_a_pod_is_active_terminating_or_finished(parts: dict[str, Any], states: tuple[bool, bool, bool]) -> None:
    pod = pod_view("p", **parts)
    assert (is_active(pod), is_terminating(pod), is_finished(pod)) == states


@pytest.mark.parametrize(
    ("ready_for_s", "min_ready_s", "is_there", "wait_s"),
    [
        pytest.param(None, 0, False, None, id="not ready"),
        pytest.param(0, 0, True, None, id="ready is enough"),
        pytest.param(5, 10, False, 5.0, id="not for long enough"),
        pytest.param(10, 10, True, None, id="just long enough"),
    ],
)
def test_available_is_ready_for_a_while(
    ready_for_s: float | None, min_ready_s: int, is_there: bool, wait_s: float | None
) -> None:
    pod = pod_view("p", ready_for_s=ready_for_s)
    assert is_ready(pod) is (ready_for_s is not None)
    assert is_available(pod, min_ready_s, NOW_S) is is_there
    assert available_in_s(pod, min_ready_s, NOW_S) == wait_s


def test_the_next_to_become_available() -> None:
    pods = [pod_view("a", ready_for_s=2), pod_view("b", ready_for_s=7), pod_view("c", ready_for_s=70), pod_view("d")]
    assert next_availability_s(pods, 10, NOW_S, NOW_S) == 3.0
    assert next_availability_s(pods, 10, NOW_S, NOW_S + 5) == 0.0
    assert next_availability_s(pods[2:], 10, NOW_S, NOW_S) is None


def test_where_pods_are_found() -> None:
    assert controller_index(pod_view("p", owner="uid-1")) == ("uid-1",)
    assert controller_index(pod_view("p")) == (orphan_key("default"),)
    assert list(orphan_label_index(pod_view("p", labels={"a": "b"}))) == ["default a=b"]
    assert list(orphan_label_index(pod_view("p", labels={"a": "b"}, owner="uid-1"))) == []
    assert node_index(pod_view("p", on="n1")) == ("n1",)
    assert node_index(pod_view("p", on="")) == ()


@pytest.mark.parametrize(
    ("volumes", "keys"),
    [
        pytest.param([], [], id="no volumes"),
        pytest.param([{"name": "d", "emptyDir": {}}], [], id="a volume that needs none"),
        pytest.param([{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}], ["default/c"], id="by name"),
        pytest.param([{"name": "d", "ephemeral": {"volumeClaimTemplate": {}}}], ["default/p-d"], id="made for it"),
    ],
)
def test_a_pod_uses(volumes: list[Document], keys: list[str]) -> None:
    assert [*claim_keys(backend_view("p", volumes=volumes))] == keys


def pod(*conditions: Condition, generation: int = 0) -> Pod:
    return Pod(metadata=ObjectMeta(generation=generation), status=PodStatus(conditions=conditions))


def target(reason: str = "why", message: str = "words", status: str = "True") -> Condition:
    return Condition(
        type="DisruptionTarget", status=status, reason=reason, message=message, last_transition_time="then"
    )


@pytest.mark.parametrize(
    ("seen", "changed"),
    [
        pytest.param(pod(), {"lastTransitionTime": "now"}, id="first recorded"),
        pytest.param(pod(generation=3), {"lastTransitionTime": "now", "observedGeneration": 3}, id="of a generation"),
        pytest.param(pod(target(reason="other")), {"lastTransitionTime": "then"}, id="another reason, the same time"),
        pytest.param(pod(target(status="False")), {"lastTransitionTime": "now"}, id="it was false before"),
        pytest.param(pod(target()), None, id="recorded already"),
    ],
)
def test_the_condition(seen: Pod, changed: Document | None) -> None:
    common = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "why",
        "message": "words",
        "lastProbeTime": None,
    }
    wanted = {**common, **changed} if changed is not None else None
    assert disruption_condition(seen, "why", "words", "now") == wanted
