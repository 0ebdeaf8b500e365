"""A client of a process that leads: reads are always sent, writes only if the process leads at that moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from mooring.api.kinds import CONFIG_MAP, NODE, POD
from mooring.client.errors import NotLeadingError
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.interface import Client, JsonObject, PatchForm, request_token
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from tests.client.contract_play import NS
from tests.client.http.play import UNLIMITED, HttpSetup, HurriedClock, run_over_http
from tests.client.http.server import Refuse, Stall
from tests.client.objects import config_map, node, pod
from tests.waiting import until

Request = Callable[[Client], Awaitable[object]]
TOKEN_REQUEST: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}


def create(client: Client) -> Awaitable[object]:
    return client.create(CONFIG_MAP, NS, config_map("other"))


WRITES = [
    pytest.param(create, id="create"),
    pytest.param(lambda c: c.update(CONFIG_MAP, NS, "settings", config_map(data={"a": "b"})), id="update"),
    pytest.param(lambda c: c.patch(CONFIG_MAP, NS, "settings", {"data": {"a": "b"}}, form=PatchForm.MERGE), id="patch"),
    pytest.param(lambda c: c.delete(CONFIG_MAP, NS, "settings"), id="delete"),
    pytest.param(lambda c: c.bind(NS, "web", "", "n1"), id="bind"),
]


class Leader:
    """The leadership of this process."""

    is_leading = False

    def may_write(self) -> bool:
        return self.is_leading


def run_as_leader(
    scenario: Callable[[HttpSetup, Leader, HttpClient], Awaitable[None]],
    limits: HttpLimits = UNLIMITED,
    make_clock: Callable[[], HurriedClock] = HurriedClock,
) -> None:
    async def play(setup: HttpSetup) -> None:
        leader, connection = Leader(), replace(setup.client.connection, proxy="")
        for kind, namespace, body in ((NODE, "", node("n1")), (POD, NS, pod("web")), (CONFIG_MAP, NS, config_map())):
            await setup.local.create(kind, namespace, body)
        async with HttpClient(
            connection, setup.clock, Entropy(1), limits=limits, environment={}, may_write=leader.may_write
        ) as client:
            await scenario(setup, leader, client)

    run_over_http(play, make_clock=make_clock)


@pytest.mark.parametrize("request_", WRITES)
def test_a_write_is_rejected_unless_the_process_leads(request_: Request) -> None:
    async def scenario(setup: HttpSetup, leader: Leader, client: HttpClient) -> None:
        before = await setup.local.list(CONFIG_MAP)
        with pytest.raises(NotLeadingError) as refusal:
            await request_(client)
        assert not refusal.value.can_help_to_retry
        assert not refusal.value.is_outcome_unknown
        assert setup.server.requests == []
        assert (await setup.local.list(CONFIG_MAP)).revision == before.revision
        leader.is_leading = True
        await request_(client)
        assert (await setup.local.list(CONFIG_MAP)).revision != before.revision

    run_as_leader(scenario)


def test_a_token_request_is_rejected_unless_the_process_leads() -> None:
    async def scenario(setup: HttpSetup, leader: Leader, client: HttpClient) -> None:
        with pytest.raises(NotLeadingError):
            await request_token(client, NS, "robot", TOKEN_REQUEST)
        assert setup.server.requests == []

    run_as_leader(scenario)


def test_reads_do_not_need_leadership() -> None:
    async def scenario(setup: HttpSetup, leader: Leader, client: HttpClient) -> None:
        assert await client.get(POD, NS, "web") == await setup.local.get(POD, NS, "web")
        listing = await client.list(POD)
        assert len(listing.items) == 1
        async with client.watch(POD, since=listing.revision) as watch:
            await setup.local.bind(NS, "web", "", "n1")
            assert len(await watch.next_batch()) == 1

    run_as_leader(scenario)


class LosingClock(HurriedClock):
    """The leader loses its lease while a request waits for the rate limit or for a retry."""

    leader: Leader | None = None

    async def wait(self, delay_s: float) -> None:
        await super().wait(delay_s)
        if self.leader is not None and delay_s > 0:
            self.leader.is_leading = False


def test_a_write_that_waited_for_the_rate_limit_is_checked_after_the_wait() -> None:
    async def scenario(setup: HttpSetup, leader: Leader, client: HttpClient) -> None:
        assert isinstance(setup.clock, LosingClock)
        leader.is_leading, setup.clock.leader = True, leader
        await client.bind(NS, "web", "", "n1")  # uses the only token
        with pytest.raises(NotLeadingError):
            await create(client)
        assert setup.clock.waited_s
        assert [request for request in setup.server.requests if "configmaps" in request] == []

    run_as_leader(scenario, HttpLimits(requests_per_s=1.0, burst=1), LosingClock)


def test_a_write_that_is_repeated_is_checked_again() -> None:
    async def scenario(setup: HttpSetup, leader: Leader, client: HttpClient) -> None:
        assert isinstance(setup.clock, LosingClock)
        leader.is_leading, setup.clock.leader = True, leader
        setup.server.faults = [Refuse(429, {"Retry-After": "1"})]
        with pytest.raises(NotLeadingError):
            await create(client)
        assert len(setup.server.requests) == 1

    run_as_leader(scenario, UNLIMITED, LosingClock)


def test_a_write_that_waited_for_a_connection_is_checked_after_the_wait() -> None:
    async def scenario(setup: HttpSetup, leader: Leader, client: HttpClient) -> None:
        leader.is_leading = True
        setup.server.faults = [Stall(method="GET")]
        results: list[object] = []

        async def write() -> None:
            try:
                results.append(await create(client))
            except NotLeadingError as error:
                results.append(error)

        async with TaskGroup("requests") as group:
            reading = group.start_background(client.get(POD, NS, "web"), name="read")  # occupies the only connection
            await until(lambda: len(setup.server.requests) == 1)
            group.start(write(), name="write")
            await setup.clock.wait(5.0)  # a hundredth of a second
            leader.is_leading = False
            reading.cancel()
        assert [type(result) for result in results] == [NotLeadingError]
        assert len(setup.server.requests) == 1

    run_as_leader(scenario, HttpLimits(requests_per_s=0, in_flight_max=1))
