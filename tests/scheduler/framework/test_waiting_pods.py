from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.framework.waiting_pods import WAIT_S_MAX, WaitingPod, WaitingPods
from tests.builders import pod

GANG, QUOTA = "Gang", "Quota"


def allow_all(waiting: WaitingPod) -> None:
    waiting.allow(GANG)
    waiting.allow(QUOTA)


def allow_one(waiting: WaitingPod) -> None:
    waiting.allow(GANG)


def reject(waiting: WaitingPod) -> None:
    waiting.allow(GANG)
    assert waiting.reject(QUOTA, "too many")
    assert not waiting.reject(GANG, "ignored")


def preempt(waiting: WaitingPod) -> None:
    assert waiting.preempt("DefaultPreemption", "preempted")


@pytest.mark.parametrize(
    ("act", "end_s", "status"),
    [
        pytest.param(allow_all, 0.0, None, id="all plugins allow it: it goes on"),
        pytest.param(
            allow_one,
            90.0,
            Status(Code.UNSCHEDULABLE, ("rejected due to timeout after waiting 1m30s at plugin Quota",), QUOTA),
            id="one does not: it times out there",
        ),
        pytest.param(reject, 0.0, Status(Code.UNSCHEDULABLE, ("too many",), QUOTA), id="one rejects it"),
        pytest.param(
            preempt,
            0.0,
            Status(Code.ERROR, ("waiting on permit for pod: preempted",), "DefaultPreemption"),
            id="a pod of higher priority needs the node",
        ),
    ],
)
def test_how_a_wait_ends(act: Callable[[WaitingPod], None], end_s: float, status: Status | None) -> None:
    clock = VirtualClock()
    ends: list[tuple[float, Status | None]] = []

    async def main() -> None:
        waiting_pods = WaitingPods()
        record = Columns().record(pod("member"))
        waiting = waiting_pods.add(record, "node", {GANG: 60.0, QUOTA: 90.0}, lambda r: ends.append((clock.now_s(), r)))
        assert waiting_pods.get(record.uid) is waiting
        assert [each.pod for each in waiting_pods] == [record]
        act(waiting)
        await clock.wait(1_000)
        assert len(waiting_pods) == 0

    run(main(), clock)
    assert ends == [(end_s, status)]


def test_no_plugin_keeps_a_pod_for_longer_than_the_limit() -> None:
    clock = VirtualClock()
    ends_s: list[float] = []

    async def main() -> None:
        waiting_pods = WaitingPods()
        waiting_pods.add(Columns().record(pod("member")), "node", {GANG: 1e9}, lambda r: ends_s.append(clock.now_s()))
        await clock.wait(2 * WAIT_S_MAX)

    run(main(), clock)
    assert ends_s == [WAIT_S_MAX]
