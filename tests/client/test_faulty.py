"""The faulty client fails as planned, in the planned order, and otherwise implements the interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mooring.api.kinds import CONFIG_MAP, POD
from mooring.client.errors import ClientError, ConflictError, ExpiredError, NoAnswerError, NotFoundError, ServerError
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from tests.api_servers import open_loopback_client
from tests.client.contract import ClientContract
from tests.client.contract_play import NS, Play, Scenario
from tests.client.faulty import Fault, FaultyClient, Outcome, Plan, Script, Storm
from tests.client.objects import at, config_map, pod


class TestWithoutFaults(ClientContract):
    @pytest.fixture
    def play(self) -> Play:
        def play(scenario: Scenario) -> None:
            run_faulty(Script(), lambda client, clock: scenario(client))

        return play


def run_faulty(plan: Plan, scenario: Callable[[FaultyClient, VirtualClock], Awaitable[None]]) -> FaultyClient:
    clock = VirtualClock()

    async def started() -> FaultyClient:
        async with open_loopback_client(clock) as inner:
            client = FaultyClient(inner, clock, plan)
            await scenario(client, clock)
            return client

    return run(started(), clock)


@pytest.mark.parametrize(
    ("outcome", "error", "is_bound"),
    [
        pytest.param(Outcome.DONE, None, True, id="done"),
        pytest.param(Outcome.REQUEST_LOST, NoAnswerError, False, id="the request is lost"),
        pytest.param(Outcome.ANSWER_LOST, NoAnswerError, True, id="the response is lost"),
        pytest.param(Outcome.CONFLICT, ConflictError, False, id="a conflict"),
        pytest.param(Outcome.BROKEN, ServerError, False, id="the server is broken"),
    ],
)
def test_faults_of_a_request_are_applied_as_planned(
    outcome: Outcome, error: type[ClientError] | None, is_bound: bool
) -> None:
    async def scenario(client: FaultyClient, clock: VirtualClock) -> None:
        await client.create(POD, NS, pod("web"))
        if error is None:
            await client.bind(NS, "web", "", "n1")
        else:
            with pytest.raises(error):
                await client.bind(NS, "web", "", "n1")
        assert clock.now_s() == 3.0
        assert at(await client.get(POD, NS, "web"), "spec.nodeName") == ("n1" if is_bound else None)

    client = run_faulty(Script(Fault("bind", outcome, delay_s=1.0, answer_delay_s=2.0)), scenario)
    assert [(request.verb, fault.outcome) for request, fault in client.faults] == [("bind", outcome)]


def test_a_lost_response_hides_an_error_of_the_server() -> None:
    async def scenario(client: FaultyClient, clock: VirtualClock) -> None:
        with pytest.raises(NoAnswerError):
            await client.get(POD, NS, "nobody")
        with pytest.raises(NotFoundError):
            await client.get(POD, NS, "nobody")

    run_faulty(Script(Fault("get", Outcome.ANSWER_LOST)), scenario)


def test_a_fault_applies_only_to_matching_requests() -> None:
    plan = Script(
        Fault("create", Outcome.BROKEN, kind=CONFIG_MAP, where=lambda request: request.name != "a", after=1, times=2)
    )
    created: list[str] = []

    async def scenario(client: FaultyClient, clock: VirtualClock) -> None:
        await client.create(POD, NS, pod("z"))
        for name in "abcdef":
            try:
                await client.create(CONFIG_MAP, NS, config_map(name))
                created.append(name)
            except ServerError:
                pass

    client = run_faulty(plan, scenario)
    assert created == ["a", "b", "e", "f"]
    assert len(client.requests) == 7


def test_faults_apply_when_a_watch_is_opened_and_read() -> None:
    plan = Script(
        Fault("watch", Outcome.EXPIRED),
        Fault("next_batch", Outcome.DONE),
        Fault("next_batch", Outcome.REQUEST_LOST, after=1),
        Fault("next_batch", Outcome.ENDED, after=2),
    )

    async def scenario(client: FaultyClient, clock: VirtualClock) -> None:
        since = (await client.list(CONFIG_MAP)).revision
        with pytest.raises(ExpiredError):
            async with client.watch(CONFIG_MAP, since=since):
                pass
        async with client.watch(CONFIG_MAP, since=since) as watch:
            await client.create(CONFIG_MAP, NS, config_map())
            assert len(await watch.next_batch()) == 1
            with pytest.raises(NoAnswerError):
                await watch.next_batch()
            assert not await watch.next_batch()

    run_faulty(plan, scenario)


def test_random_faults_are_reproducible_by_seed() -> None:
    async def scenario(client: FaultyClient, clock: VirtualClock) -> None:
        for number in range(200):
            try:
                await client.create(CONFIG_MAP, NS, config_map(f"c{number}"))
                await client.get(CONFIG_MAP, NS, f"c{number}")
            except ClientError:
                pass

    def faults(seed: int) -> list[tuple[int, Outcome]]:
        storm = Storm(
            Entropy(seed),
            {"create": 0.3},
            [Outcome.REQUEST_LOST, Outcome.ANSWER_LOST],
            delay_s_max=1.0,
            requests_max=300,
        )
        return [(request.number, fault.outcome) for request, fault in run_faulty(storm, scenario).faults]

    assert faults(1) == faults(1) != faults(2)
    assert 30 < len(faults(1)) < 90
    assert max(number for number, _ in faults(1)) < 300
