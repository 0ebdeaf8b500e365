"""Requests: rate limit, retries of requests that are safe to repeat, and foreign responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mooring.api.kinds import CONFIG_MAP, POD
from mooring.client.errors import ClientError, NoAnswerError, ServerError, TooManyRequestsError
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.requests import NO_ANSWER, TRIES_MAX
from mooring.client.interface import PatchForm
from tests.client.contract_play import NS
from tests.client.http.play import HttpSetup, StandingClock, run_over_http
from tests.client.http.server import Refuse, Reset, ServerFault, Stall
from tests.client.objects import config_map

LATER = {"Retry-After": "3"}


async def get(client: HttpClient) -> object:
    return await client.get(CONFIG_MAP, NS, "settings")


async def update(client: HttpClient) -> object:
    return await client.update(CONFIG_MAP, NS, "settings", config_map(data={"a": "2"}))


async def delete(client: HttpClient) -> None:
    await client.delete(CONFIG_MAP, NS, "settings")


@pytest.mark.parametrize(
    ("faults", "request_of", "waited_s"),
    [
        pytest.param([Refuse(429, LATER)], update, [3.0], id="429 with a Retry-After"),
        pytest.param([Refuse(503, LATER), Refuse(500, LATER)], update, [3.0, 3.0], id="5xx with a Retry-After"),
        pytest.param([Reset()], get, [0.0], id="a broken connection, read"),
        pytest.param([Reset(), Reset()], get, [0.0, 1.0], id="two broken connections, read"),
        pytest.param([Refuse(429, LATER)] * TRIES_MAX, get, [3.0] * TRIES_MAX, id="maximum number of retries"),
    ],
)
def test_requests_that_are_retried(
    faults: list[ServerFault], request_of: Callable[[HttpClient], Awaitable[object]], waited_s: list[float]
) -> None:
    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(CONFIG_MAP, NS, config_map())
        setup.server.faults = list(faults)
        await request_of(setup.client)
        assert setup.clock.waited_s == waited_s
        assert setup.client.statistics()["retries"] == len(faults)

    run_over_http(scenario)


@pytest.mark.parametrize(
    ("faults", "request_of", "error"),
    [
        pytest.param([Refuse(429)], get, TooManyRequestsError, id="429 without a Retry-After"),
        pytest.param([Refuse(500)], get, ServerError, id="500 without a Retry-After"),
        pytest.param([Refuse(503, {"Retry-After": "tomorrow"})], get, ServerError, id="an invalid Retry-After"),
        pytest.param([Refuse(404, LATER)], get, ClientError, id="404"),
        pytest.param([Reset(is_carried_out=True)], update, NoAnswerError, id="an update without a response"),
        pytest.param([Reset(is_carried_out=True)], delete, NoAnswerError, id="a delete without a response"),
    ],
)
def test_requests_that_are_not_retried(
    faults: list[ServerFault], request_of: Callable[[HttpClient], Awaitable[object]], error: type[ClientError]
) -> None:
    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(CONFIG_MAP, NS, config_map())
        await get(setup.client)  # makes the connection a reused one, on which some HTTP libraries retry automatically
        setup.server.requests.clear()
        setup.server.faults = list(faults)
        with pytest.raises(error):
            await request_of(setup.client)
        assert len(setup.server.requests) == 1

    run_over_http(scenario)


def test_the_number_of_retries_is_limited() -> None:
    async def scenario(setup: HttpSetup) -> None:
        setup.server.faults = [Refuse(429, LATER)] * 20
        with pytest.raises(TooManyRequestsError) as refusal:
            await get(setup.client)
        assert refusal.value.retry_after_s == 3.0
        assert len(setup.server.requests) == TRIES_MAX + 1

    run_over_http(scenario)


def test_a_stopped_server_is_a_no_answer_error() -> None:
    async def scenario(setup: HttpSetup) -> None:
        async with HttpClient(setup.client.connection, setup.clock, setup.client._entropy, environment={}) as client:
            await setup.server.__aexit__(None, None, None)
            with pytest.raises(NoAnswerError, match=r"GET http://127.0.0.1:\d+/api/v1/namespaces/default/configmaps/"):
                await get(client)
            with pytest.raises(NoAnswerError):
                async with client.watch(POD, since="1"):
                    pass

    run_over_http(scenario)


def test_a_request_without_a_response_times_out() -> None:
    async def scenario(setup: HttpSetup) -> None:
        setup.server.faults = [Stall()]
        with pytest.raises(NoAnswerError, match="no answer in time"):
            await get(setup.client)

    run_over_http(scenario, limits=HttpLimits(requests_per_s=0, request_s_max=0.05))


def test_requests_are_rate_limited_by_a_token_bucket() -> None:
    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(CONFIG_MAP, NS, config_map())
        for _ in range(5):
            await get(setup.client)
        # Two requests without delay, then one per second; the clock stands still.
        assert setup.clock.waited_s == [1.0, 2.0, 3.0]
        assert setup.client.statistics()["throttled"] == 3

    run_over_http(scenario, limits=HttpLimits(requests_per_s=1.0, burst=2), make_clock=StandingClock)


def test_opening_a_watch_is_retried_like_a_request() -> None:
    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(CONFIG_MAP, NS, config_map())
        setup.server.faults = [Refuse(429, LATER), Reset(), Refuse(500)]
        with pytest.raises(ServerError):
            async with setup.client.watch(CONFIG_MAP, since="1"):
                pass
        assert setup.clock.waited_s == [3.0, 1.0]

    run_over_http(scenario)


def test_requests_are_counted_by_outcome_and_duration() -> None:
    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(CONFIG_MAP, NS, config_map())
        setup.server.faults = [Reset(), Refuse(429, LATER)]
        await get(setup.client)
        await update(setup.client)
        asked = setup.client.request_statistics
        assert dict(asked.outcomes) == {("GET", NO_ANSWER): 1, ("GET", 429): 1, ("GET", 200): 1, ("PUT", 200): 1}
        assert {method: sum(each.counts) for method, each in asked.durations.items()} == {"GET": 3, "PUT": 1}
        assert {method: sum(each.counts) for method, each in asked.turns.items()} == {"GET": 3, "PUT": 1}

    run_over_http(scenario, limits=HttpLimits(requests_per_s=50, burst=50))


PAGE = b"<html>Please log in.</html>"
FOREIGN_ANSWERS = [
    pytest.param(PAGE, "text/html", id="HTML"),
    pytest.param(b"", "text/plain", id="empty"),
    pytest.param(b"[]", "application/json", id="JSON that is not an object"),
    pytest.param(b'{"message":"hello"}', "application/json", id="an object without a kind"),
    pytest.param(b'{"items":[]}', "application/json", id="a list without a kind"),
    pytest.param(b'{"kind":"Greeting","apiVersion":"v1"}', "application/json", id="an object of another kind"),
    pytest.param(b'{"a":' * 100_000, "application/json", id="a deeply nested object"),
]
WRITES = [
    pytest.param(lambda client: client.create(CONFIG_MAP, NS, config_map()), id="create"),
    pytest.param(
        lambda client: client.create(CONFIG_MAP, NS, config_map(), is_answer_wanted=False),
        id="create without an answer",
    ),
    pytest.param(update, id="update"),
    pytest.param(lambda client: client.patch(CONFIG_MAP, NS, "settings", {}, form=PatchForm.MERGE), id="patch"),
    pytest.param(delete, id="delete"),
    pytest.param(lambda client: client.bind(NS, "web", "", "n1"), id="bind"),
]
READS = [
    pytest.param(get, id="get"),
    pytest.param(lambda client: client.list(CONFIG_MAP), id="list"),
]


@pytest.mark.parametrize(("body", "content_type"), FOREIGN_ANSWERS)
@pytest.mark.parametrize("request_", WRITES)
def test_a_foreign_success_response_makes_the_outcome_of_a_write_unknown(
    request_: Callable[[HttpClient], Awaitable[object]], body: bytes, content_type: str
) -> None:
    async def scenario(setup: HttpSetup) -> None:
        setup.server.faults = [Refuse(200, body=body, content_type=content_type)]
        with pytest.raises(NoAnswerError, match="the response does not come from an API server") as error:
            await request_(setup.client)
        assert error.value.is_outcome_unknown
        assert len(setup.server.requests) == 1

    run_over_http(scenario)


@pytest.mark.parametrize(("body", "content_type"), FOREIGN_ANSWERS)
@pytest.mark.parametrize("request_", READS)
def test_a_foreign_success_response_to_a_read_is_an_error(
    request_: Callable[[HttpClient], Awaitable[object]], body: bytes, content_type: str
) -> None:
    async def scenario(setup: HttpSetup) -> None:
        setup.server.faults = [Refuse(200, body=body, content_type=content_type)]
        with pytest.raises(ServerError, match="the response does not come from an API server") as error:
            await request_(setup.client)
        assert error.value.can_help_to_retry

    run_over_http(scenario)


def test_html_instead_of_watch_events_is_an_error() -> None:
    async def scenario(setup: HttpSetup) -> None:
        await setup.local.create(CONFIG_MAP, NS, config_map())
        setup.server.faults = [Refuse(200, body=PAGE + b"\n", content_type="text/html", method="WATCH")]
        async with setup.client.watch(CONFIG_MAP, since="1") as watch:
            with pytest.raises(ServerError):
                await watch.next_batch()

    run_over_http(scenario)
