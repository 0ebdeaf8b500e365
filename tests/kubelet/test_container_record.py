"""Container records: order of the containers, and restoring from container statuses."""

from __future__ import annotations

import pytest

from mooring.kubelet.container_record import container_records, restore_records
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Waiting
from tests.kubelet.harness import Body, container, pod, view

STARTED, ENDED = "1970-01-01T00:00:10Z", "1970-01-01T00:00:20Z"
RUNNING = {"running": {"startedAt": STARTED}}
TERMINATED = {
    "terminated": {"exitCode": 2, "reason": "Error", "message": "m", "startedAt": STARTED, "finishedAt": ENDED}
}
END = Exited(2, 10.0, 20.0, "Error", "m")


def test_every_container_has_a_slot_those_that_go_first_in_front() -> None:
    one = view(
        pod(
            containers=[container("a"), container("b")],
            initContainers=[container("init"), container("proxy", restartPolicy="Always")],
            ephemeralContainers=[container("shell")],
        )
    )
    assert {name: record.role for name, record in container_records(one.spec).items()} == {
        "init": Role.INIT,
        "proxy": Role.SIDECAR,
        "a": Role.CONTAINER,
        "b": Role.CONTAINER,
        "shell": Role.EPHEMERAL,
    }


@pytest.mark.parametrize(
    ("told", "state", "last", "attempt"),
    [
        pytest.param({"state": {"waiting": {"reason": "ContainerCreating"}}}, None, None, -1, id="never ran"),
        pytest.param(
            {"state": RUNNING, "ready": True, "started": True, "restartCount": 3}, Running(10.0), None, 3, id="runs"
        ),
        pytest.param(
            {"state": RUNNING, "ready": False, "started": False, "restartCount": 0},
            *(Running(10.0, is_ready=False, is_started=False), None, 0),
            id="runs, but is not up",
        ),
        pytest.param(
            {"state": RUNNING, "ready": True, "lastState": TERMINATED, "restartCount": 1},
            *(Running(10.0), END, 1),
            id="runs again",
        ),
        pytest.param({"state": TERMINATED, "restartCount": 1}, END, None, 1, id="has ended"),
        pytest.param(
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": TERMINATED, "restartCount": 4},
            *(END, None, 4),
            id="waits to be started again",
        ),
    ],
)
def test_what_was_told_is_recalled(told: Body, state: ContainerState | None, last: Exited | None, attempt: int) -> None:
    one = view({**pod(), "status": {"containerStatuses": [{"name": "main", **told}]}})
    records = container_records(one.spec)
    restore_records(records, one)
    record = records["main"]
    assert (record.state, record.last, record.attempt) == (state, last, attempt)


@pytest.mark.parametrize(
    ("state", "is_starting", "is_so"),
    [
        pytest.param(None, False, False, id="nobody has begun"),
        pytest.param(None, True, True, id="it was told to start"),
        pytest.param(Waiting(), False, True, id="it waits for something"),
        pytest.param(Running(10.0), False, True, id="it runs"),
        pytest.param(END, False, False, id="it has ended"),
        pytest.param(END, True, True, id="it was told to start again"),
    ],
)
def test_a_container_is_under_way(state: ContainerState | None, is_starting: bool, is_so: bool) -> None:
    record = container_records(view(pod()).spec)["main"]
    record.state, record.is_starting = state, is_starting
    assert record.is_active is is_so
