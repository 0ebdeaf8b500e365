"""Why a log cannot be read, in the kubelet's words."""

from __future__ import annotations

import pytest

from mooring.kubelet.log_errors import logged_attempt, why_no_log
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


@pytest.mark.parametrize(
    ("state", "is_previous", "attempt"),
    [
        pytest.param(RUNS, False, 3, id="of the run that goes on"),
        pytest.param(RUNS, True, 2, id="of the one before"),
        pytest.param(ENDED, True, 2, id="of the one before the last"),
        pytest.param(waits("CrashLoopBackOff"), False, 3, id="of the last, as there is none"),
        pytest.param(waits("CrashLoopBackOff"), True, 3, id="of the last, which was the one before"),
    ],
)
def test_whose_log_is_meant(state: Body, is_previous: bool, attempt: int) -> None:
    status = {"containerStatuses": [{"name": "main", "state": state, "restartCount": 3}]}
    assert logged_attempt({"metadata": {"name": "web"}, "status": status}, "main", is_previous=is_previous) == attempt
