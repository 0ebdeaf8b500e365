"""Under injected faults the kubelets keep working; afterwards all pods are in their final state."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kubelet.settings import KubeletSettings
from tests.client.faulty import FaultyClient, Outcome, Storm
from tests.kubelet.harness import Play, played, pod

OUTCOMES = (Outcome.DONE, Outcome.REQUEST_LOST, Outcome.ANSWER_LOST, Outcome.BROKEN, Outcome.CONFLICT)
PODS = 12


@pytest.mark.parametrize("seed", range(10))
def test_everything_converges_after_a_storm(seed: int) -> None:
    def through(client: Client, clock: VirtualClock) -> Client:
        likelihoods = {"patch": 0.4, "create": 0.3, "delete": 0.4, "list": 0.3, "watch": 0.3, "next_batch": 0.2}
        storm = Storm(Entropy(seed), likelihoods, OUTCOMES, delay_s_max=2.0, requests_max=300)
        return FaultyClient(client, clock, storm)

    async def story(play: Play) -> None:
        for number in range(PODS):
            await play.create(pod(f"web-{number}", on=f"node-{number % 3}"))
        await play.wait(20.0)
        for number in range(0, PODS, 2):
            await play.delete(f"web-{number}")
        await play.wait(400.0)
        for number in range(PODS):
            wanted = "Running ready main=running" if number % 2 else "gone"
            assert await play.line(f"web-{number}") == wanted
        assert play.fleet.statistics()["pods"] == PODS // 2
        addresses = [(await play.status(f"web-{number}"))["podIP"] for number in range(1, PODS, 2)]
        assert len({*addresses}) == PODS // 2
        assert len((await play.client.list(POD)).items) == PODS // 2

    played(story, KubeletSettings(count=3), seed=seed, through=through)
