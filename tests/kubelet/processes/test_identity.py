"""As whom a container may run."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.kubelet.processes.identity import why_not_as
from tests.kubelet.whole import pod_with


@pytest.mark.parametrize(
    ("of_pod", "of_container", "user", "word"),
    [
        pytest.param({}, {}, 0, "", id="nobody minds"),
        pytest.param({"runAsUser": 7}, {}, 7, "", id="as whom we are"),
        pytest.param({"runAsUser": 7}, {}, 8, "as user 7", id="as somebody else"),
        pytest.param({"runAsUser": 7}, {"runAsUser": 8}, 8, "", id="the container counts before the pod"),
        pytest.param({"runAsNonRoot": True}, {}, 8, "", id="not as root, and we are not"),
        pytest.param({"runAsNonRoot": True}, {}, 0, "runAsNonRoot", id="not as root, but we are"),
        pytest.param({"runAsNonRoot": True}, {"runAsNonRoot": False}, 0, "", id="the container does not mind"),
    ],
)
def test_why_not(of_pod: dict[str, Any], of_container: dict[str, Any], user: int, word: str) -> None:
    pod = pod_with({"securityContext": of_pod}, securityContext=of_container)
    why = why_not_as(user, pod, pod.spec.containers[0])
    assert word in why
    assert bool(why) == bool(word)
