"""Statuses reach the API despite errors, and never another pod of the same name."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.kubelet.harness import Play, played, pod


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([Fault("patch", Outcome.REQUEST_LOST, kind=POD, times=3)], id="requests are lost"),
        pytest.param([Fault("patch", Outcome.ANSWER_LOST, kind=POD, times=3)], id="answers are lost"),
        pytest.param([Fault("patch", Outcome.BROKEN, kind=POD, times=3)], id="the server is ill"),
        pytest.param([Fault("patch", Outcome.CONFLICT, kind=POD, times=3)], id="others write at the same time"),
        pytest.param([Fault("patch", Outcome.EXPIRED, kind=POD)], id="a refusal that should not be"),
        pytest.param([Fault("patch", Outcome.DONE, kind=POD, delay_s=3.0)], id="the server is slow"),
        pytest.param([Fault("delete", Outcome.REQUEST_LOST, kind=POD, times=2)], id="deletions are lost"),
        pytest.param([Fault("delete", Outcome.ANSWER_LOST, kind=POD, times=2)], id="answers to deletions are lost"),
        pytest.param([Fault("watch", Outcome.EXPIRED, kind=POD, times=2)], id="the history is gone"),
        pytest.param([Fault("next_batch", Outcome.BROKEN, kind=POD, times=3)], id="watches break"),
    ],
)
def test_a_pod_runs_and_goes_whatever_happens(faults: list[Fault]) -> None:
    async def story(play: Play) -> None:
        await play.create(pod())
        await play.wait(45.0)
        assert await play.line("web") == "Running ready main=running"
        await play.delete("web")
        await play.wait(30.0)
        assert await play.line("web") == "gone"

    played(story, through=lambda client, clock: FaultyClient(client, clock, Script(*faults)))


def test_another_pod_of_the_same_name_is_left_alone() -> None:
    late = Fault("patch", Outcome.REQUEST_LOST, kind=POD, times=2)

    async def story(play: Play) -> None:
        await play.create(pod("web", stage_set="fails", restartPolicy="Never"))
        await play.wait(1.5)
        await play.delete("web", 0)
        await play.create(pod("web", on=""))
        await play.wait(30.0)
        assert await play.line("web") == "Pending"

    played(story, through=lambda client, clock: FaultyClient(client, clock, Script(late)))


def test_a_change_of_another_client_is_corrected_although_the_watch_is_faster_than_the_answer() -> None:
    late = Fault("patch", Outcome.DONE, kind=POD, answer_delay_s=5.0)

    async def story(play: Play) -> None:
        await play.create(pod())
        await play.wait(3.0)
        assert await play.line("web") == "Running ready main=running"
        not_ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await play.change("web", not_ready, subresource="status")
        assert await play.line("web") == "Running main=running"
        await play.wait(30.0)
        assert await play.line("web") == "Running ready main=running"

    played(story, through=lambda client, clock: FaultyClient(client, clock, Script(late)))
