"""What a pod says that the cluster takes away."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.views.meta import Condition, ObjectMeta
from mooring.api.views.pod import Pod, PodStatus
from mooring.controllers.pod_disruption import disruption_condition


def pod(*conditions: Condition, generation: int = 0) -> Pod:
    return Pod(metadata=ObjectMeta(generation=generation), status=PodStatus(conditions=conditions))


def target(reason: str = "why", message: str = "words", status: str = "True") -> Condition:
    return Condition(
        type="DisruptionTarget", status=status, reason=reason, message=message, last_transition_time="then"
    )


@pytest.mark.parametrize(
    ("seen", "changed"),
    [
        pytest.param(pod(), {"lastTransitionTime": "now"}, id="first told"),
        pytest.param(pod(generation=3), {"lastTransitionTime": "now", "observedGeneration": 3}, id="of a generation"),
        pytest.param(pod(target(reason="other")), {"lastTransitionTime": "then"}, id="another reason, the same time"),
        pytest.param(pod(target(status="False")), {"lastTransitionTime": "now"}, id="it was false before"),
        pytest.param(pod(target()), None, id="told already"),
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
