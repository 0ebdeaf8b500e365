"""Why a log cannot be read, in the kubelet's words."""

from __future__ import annotations

import pytest

from mooring.kubelet.log_refusals import why_no_log
from tests.kubelet.play import Body

ENDED = {"terminated": {"containerID": "mooring://1"}}
LOST = {"terminated": {"exitCode": 137}}
RUNS: Body = {"running": {}}
WHO = 'container "main" in pod "web"'


def waits(reason: str) -> Body:
    return {"waiting": {"reason": reason}}


@pytest.mark.parametrize(
    ("state", "last", "is_previous", "why"),
    [
        pytest.param(RUNS, {}, False, "", id="it runs"),
        pytest.param(ENDED, {}, False, "", id="it has ended"),
        pytest.param(waits("CrashLoopBackOff"), ENDED, False, "", id="it will be started again"),
        pytest.param(LOST, {}, False, f"{WHO} is terminated", id="nobody knows how it ended"),
        pytest.param(
            waits("ContainerCreating"), {}, False, f"{WHO} is waiting to start: ContainerCreating", id="not yet"
        ),
        pytest.param(
            waits("ErrImagePull"), {}, False, f"{WHO} is waiting to start: image can't be pulled", id="no image"
        ),
        pytest.param(
            waits("ImagePullBackOff"),
            *({}, False),
            f"{WHO} is waiting to start: trying and failing to pull image",
            id="still no image",
        ),
        pytest.param(RUNS, ENDED, True, "", id="the run before"),
        pytest.param(RUNS, {}, True, f"previous terminated {WHO} not found", id="there was none"),
    ],
)
def test_why_there_is_no_log(state: Body, last: Body, is_previous: bool, why: str) -> None:
    status = {"containerStatuses": [{"name": "main", "state": state, "lastState": last}]}
    body = {"metadata": {"name": "web"}, "status": status}
    assert why_no_log(body, "main", is_previous=is_previous) == why


def test_a_container_of_which_nothing_was_told() -> None:
    assert why_no_log({"metadata": {"name": "web"}}, "main", is_previous=False) == f"{WHO} is not available"
