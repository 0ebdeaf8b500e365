"""Which containers to start or to delay, and when a pod is complete.

Container records: order of the containers, and restoring from container statuses.
"""

from __future__ import annotations

import pytest

from mooring.kubelet.pod_actions import (
    ContainerRecord,
    compute_pod_actions,
    container_records,
    count_restart,
    crash_loop_waiting,
    restart_allowed_s,
    restore_records,
    should_restart,
    start_error_waiting,
)
from mooring.kubelet.runtime import START_ERROR, ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.views import KubeletPod
from tests.kubelet.harness import Body, container, pod, view

NOW_S = 1_000.0
RUNS = Running(900.0)
RUNS_COMING_UP = Running(900.0, is_ready=False, is_started=False)
DONE = Exited(0, 900.0, 990.0)
FAILED = Exited(1, 900.0, 990.0)
JUST_FAILED = Exited(1, 900.0, 999.5)

INIT = [container("one"), container("two")]
SIDECAR = [container("proxy", restartPolicy="Always"), container("two")]


def planned(body: Body, states: dict[str, ContainerState]) -> tuple[list[str], list[str], bool]:
    one = view(body)
    records = slots_with(one, states)
    plan = compute_pod_actions(one, records.values(), NOW_S)
    return [s.container.name for s in plan.start], [h.record.container.name for h in plan.delayed], plan.is_complete


def slots_with(one: KubeletPod, states: dict[str, ContainerState]) -> dict[str, ContainerRecord]:
    records = container_records(one.spec)
    for name, state in states.items():
        records[name].state, records[name].attempt = state, 0
    return records


@pytest.mark.parametrize(
    ("body", "states", "start", "delayed", "is_complete"),
    [
        pytest.param(pod(), {}, ["main"], [], False, id="a new pod starts"),
        pytest.param(
            pod(containers=[container("a"), container("b")]), {}, ["a", "b"], [], False, id="all containers at once"
        ),
        pytest.param(pod(), {"main": RUNS}, [], [], False, id="what runs is left alone"),
        pytest.param(pod(), {"main": JUST_FAILED}, [], ["main"], False, id="an end is seen a second later"),
        pytest.param(pod(), {"main": FAILED}, ["main"], [], False, id="then it is started again"),
        pytest.param(pod(), {"main": DONE}, ["main"], [], False, id="Always: after a success too"),
        pytest.param(pod(restartPolicy="OnFailure"), {"main": DONE}, [], [], True, id="OnFailure: not then"),
        pytest.param(pod(restartPolicy="OnFailure"), {"main": FAILED}, ["main"], [], False, id="OnFailure: a failure"),
        pytest.param(pod(restartPolicy="Never"), {"main": FAILED}, [], [], True, id="Never: never"),
        pytest.param(
            pod(restartPolicy="Never", containers=[container("a"), container("b")]),
            {"a": FAILED, "b": RUNS},
            *([], [], False),
            id="Never: the others go on",
        ),
        pytest.param(pod(initContainers=INIT), {}, ["one"], [], False, id="init containers one after the other"),
        pytest.param(pod(initContainers=INIT), {"one": RUNS}, [], [], False, id="each to its end"),
        pytest.param(pod(initContainers=INIT), {"one": DONE}, ["two"], [], False, id="then the next"),
        pytest.param(pod(initContainers=INIT), {"one": DONE, "two": DONE}, ["main"], [], False, id="then the pod"),
        pytest.param(pod(initContainers=INIT), {"one": FAILED}, ["one"], [], False, id="a failed one again"),
        pytest.param(
            pod(initContainers=INIT, restartPolicy="Never"), {"one": FAILED}, [], [], True, id="or the pod is through"
        ),
        pytest.param(pod(initContainers=SIDECAR), {}, ["proxy"], [], False, id="a sidecar in its turn"),
        pytest.param(pod(initContainers=SIDECAR), {"proxy": RUNS_COMING_UP}, [], [], False, id="waited for"),
        pytest.param(pod(initContainers=SIDECAR), {"proxy": RUNS}, ["two"], [], False, id="until it has come up"),
        pytest.param(
            pod(initContainers=SIDECAR, restartPolicy="Never"),
            {"proxy": FAILED, "two": DONE, "main": RUNS},
            *(["proxy"], [], False),
            id="a sidecar is always started again",
        ),
        pytest.param(
            pod(initContainers=SIDECAR, restartPolicy="Never"),
            {"proxy": RUNS, "two": DONE, "main": DONE},
            *([], [], True),
            id="a sidecar keeps no pod from being through",
        ),
        pytest.param(
            pod(initContainers=INIT), {"one": DONE, "two": DONE, "main": FAILED}, ["main"], [], False, id="never back"
        ),
        pytest.param(
            pod(ephemeralContainers=[container("shell")]), {"main": RUNS}, ["shell"], [], False, id="one to look around"
        ),
        pytest.param(
            pod(ephemeralContainers=[container("shell")]), {"main": RUNS, "shell": DONE}, [], [], False, id="once only"
        ),
    ],
)
def test_what_is_done_next(
    body: Body, states: dict[str, ContainerState], start: list[str], delayed: list[str], is_complete: bool
) -> None:
    assert planned(body, states) == (start, delayed, is_complete)


RULES = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
OTHERS = [{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}}]


@pytest.mark.parametrize(
    ("policy", "own", "code", "is_restarted"),
    [
        ("Always", {}, 0, True),
        ("OnFailure", {}, 0, False),
        ("OnFailure", {}, 1, True),
        ("Never", {}, 1, False),
        ("Always", {"restartPolicy": "Never"}, 1, False),
        ("Never", {"restartPolicy": "OnFailure"}, 1, True),
        ("Never", {"restartPolicy": "OnFailure"}, 0, False),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": RULES}, 42, True),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": RULES}, 1, False),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": OTHERS}, 1, True),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": OTHERS}, 42, False),
        ("Always", {"restartPolicy": "Never", "restartPolicyRules": RULES}, 1, False),
    ],
)
def test_restarted_containers(policy: str, own: Body, code: int, is_restarted: bool) -> None:
    one = view(pod(restartPolicy=policy, containers=[container(**own)]))
    assert should_restart(one.spec.containers[0], one.spec, code) is is_restarted


def test_the_wait_doubles_from_10_to_300_seconds_and_counts_from_the_end() -> None:
    record = container_records(view(pod()).spec)["main"]
    waits = []
    now_s = 0.0
    for _ in range(8):
        record.state = Exited(1, now_s, now_s + 1.0)
        now_s += 2.0
        free_s = restart_allowed_s(record, now_s)
        waits.append(max(0.0, free_s - record.state.finished_s) if record.backoff_s else 0.0)
        now_s = max(now_s, free_s)
        count_restart(record, now_s)
    assert waits == [0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]


@pytest.mark.parametrize(("ran_s", "wait_s"), [(599.0, 80.0), (601.0, 10.0)])
def test_a_run_of_more_than_ten_minutes_makes_the_next_wait_the_first_again(ran_s: float, wait_s: float) -> None:
    record = container_records(view(pod()).spec)["main"]
    record.backoff_s, record.backoff_since_s = 40.0, 1_000.0
    record.state = Exited(1, 1_000.0, 1_000.0 + ran_s)
    count_restart(record, 1_000.0 + ran_s + 40.0)
    assert record.backoff_s == wait_s


def test_a_waiting_state_has_the_message_of_the_kubelet() -> None:
    one = view(pod("web"), uid="u-1")
    record = container_records(one.spec)["main"]
    record.backoff_s = 80.0
    assert crash_loop_waiting(record, one) == Waiting(
        "CrashLoopBackOff", "back-off 1m20s restarting failed container=main pod=web_default(u-1)"
    )


def test_a_delayed_start_has_a_time_and_a_waiting_state() -> None:
    one = view(pod())
    records = slots_with(one, {"main": FAILED})
    records["main"].backoff_s, records["main"].backoff_since_s = 20.0, 980.0
    (delayed,) = compute_pod_actions(one, records.values(), NOW_S).delayed
    assert delayed.until_s == 1_010.0
    assert delayed.waiting is not None
    assert delayed.waiting.reason == "CrashLoopBackOff"


@pytest.mark.parametrize(
    ("policy", "state", "waiting"),
    [
        pytest.param(
            "Always", Exited(128, 0.0, 9.0, START_ERROR, "why"), Waiting("RunContainerError", "why"), id="again"
        ),
        pytest.param("Never", Exited(128, 0.0, 9.0, START_ERROR, "why"), None, id="it is not tried again"),
        pytest.param("Always", Exited(128, 0.0, 9.0, "Error", "why"), None, id="it ran"),
    ],
)
def test_the_state_of_a_failed_start(policy: str, state: Exited, waiting: Waiting | None) -> None:
    one = view(pod(restartPolicy=policy))
    (record,) = slots_with(one, {"main": state}).values()
    assert start_error_waiting(record, one) == waiting


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
    ("reported", "state", "last", "attempt"),
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
def test_records_are_restored_from_statuses(
    reported: Body, state: ContainerState | None, last: Exited | None, attempt: int
) -> None:
    one = view({**pod(), "status": {"containerStatuses": [{"name": "main", **reported}]}})
    records = container_records(one.spec)
    restore_records(records, one)
    record = records["main"]
    assert (record.state, record.last, record.attempt) == (state, last, attempt)


@pytest.mark.parametrize(
    ("state", "is_starting", "is_so"),
    [
        pytest.param(None, False, False, id="no container has started"),
        pytest.param(None, True, True, id="it is starting"),
        pytest.param(Waiting(), False, True, id="it waits for something"),
        pytest.param(Running(10.0), False, True, id="it runs"),
        pytest.param(END, False, False, id="it has ended"),
        pytest.param(END, True, True, id="it is starting again"),
    ],
)
def test_a_container_is_under_way(state: ContainerState | None, is_starting: bool, is_so: bool) -> None:
    record = container_records(view(pod()).spec)["main"]
    record.state, record.is_starting = state, is_starting
    assert record.is_active is is_so
