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
from tests.client.http.play import Scene, StandingClock, play_over_http
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
        pytest.param([Reset()], get, [0.0], id="a broken connection, for who reads, at once"),
        pytest.param([Reset(), Reset()], get, [0.0, 1.0], id="and then after a second"),
        pytest.param([Refuse(429, LATER)] * TRIES_MAX, get, [3.0] * TRIES_MAX, id="ten times"),
    ],
)
def test_requests_that_are_retried(
    faults: list[ServerFault], request_of: Callable[[HttpClient], Awaitable[object]], waited_s: list[float]
) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.local.create(CONFIG_MAP, NS, config_map())
        scene.server.faults = list(faults)
        await request_of(scene.client)
        assert scene.clock.waited_s == waited_s
        assert scene.client.statistics()["retries"] == len(faults)

    play_over_http(scenario)


@pytest.mark.parametrize(
    ("faults", "request_of", "error"),
    [
        pytest.param([Refuse(429)], get, TooManyRequestsError, id="429 without a Retry-After"),
        pytest.param([Refuse(500)], get, ServerError, id="500 without one"),
        pytest.param([Refuse(503, {"Retry-After": "tomorrow"})], get, ServerError, id="a Retry-After in words"),
        pytest.param([Refuse(404, LATER)], get, ClientError, id="what is the fault of the request"),
        pytest.param([Reset(is_carried_out=True)], update, NoAnswerError, id="an update whose answer is lost"),
        pytest.param([Reset(is_carried_out=True)], delete, NoAnswerError, id="a deletion whose answer is lost"),
    ],
)
def test_requests_that_are_not_retried(
    faults: list[ServerFault], request_of: Callable[[HttpClient], Awaitable[object]], error: type[ClientError]
) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.local.create(CONFIG_MAP, NS, config_map())
        await get(scene.client)  # makes the connection a reused one, on which some HTTP libraries retry automatically
        scene.server.asked.clear()
        scene.server.faults = list(faults)
        with pytest.raises(error):
            await request_of(scene.client)
        assert len(scene.server.asked) == 1

    play_over_http(scenario)


def test_the_number_of_retries_is_limited() -> None:
    async def scenario(scene: Scene) -> None:
        scene.server.faults = [Refuse(429, LATER)] * 20
        with pytest.raises(TooManyRequestsError) as refusal:
            await get(scene.client)
        assert refusal.value.retry_after_s == 3.0
        assert len(scene.server.asked) == TRIES_MAX + 1

    play_over_http(scenario)


def test_a_stopped_server_is_a_no_answer_error() -> None:
    async def scenario(scene: Scene) -> None:
        async with HttpClient(scene.client.connection, scene.clock, scene.client._entropy, environment={}) as client:
            await scene.server.__aexit__(None, None, None)
            with pytest.raises(NoAnswerError, match=r"GET http://127.0.0.1:\d+/api/v1/namespaces/default/configmaps/"):
                await get(client)
            with pytest.raises(NoAnswerError):
                async with client.watch(POD, since="1"):
                    pass

    play_over_http(scenario)


def test_a_request_without_a_response_times_out() -> None:
    async def scenario(scene: Scene) -> None:
        scene.server.faults = [Stall()]
        with pytest.raises(NoAnswerError, match="no answer in time"):
            await get(scene.client)

    play_over_http(scenario, limits=HttpLimits(requests_per_s=0, request_s_max=0.05))


def test_requests_are_rate_limited_by_a_token_bucket() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.local.create(CONFIG_MAP, NS, config_map())
        for _ in range(5):
            await get(scene.client)
        # Two requests without delay, then one per second; the clock stands still.
        assert scene.clock.waited_s == [1.0, 2.0, 3.0]
        assert scene.client.statistics()["throttled"] == 3

    play_over_http(scenario, limits=HttpLimits(requests_per_s=1.0, burst=2), make_clock=StandingClock)


def test_opening_a_watch_is_retried_like_a_request() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.local.create(CONFIG_MAP, NS, config_map())
        scene.server.faults = [Refuse(429, LATER), Reset(), Refuse(500)]
        with pytest.raises(ServerError):
            async with scene.client.watch(CONFIG_MAP, since="1"):
                pass
        assert scene.clock.waited_s == [3.0, 1.0]

    play_over_http(scenario)


def test_requests_are_counted_by_outcome_and_duration() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.local.create(CONFIG_MAP, NS, config_map())
        scene.server.faults = [Reset(), Refuse(429, LATER)]
        await get(scene.client)
        await update(scene.client)
        asked = scene.client.request_statistics
        assert dict(asked.outcomes) == {("GET", NO_ANSWER): 1, ("GET", 429): 1, ("GET", 200): 1, ("PUT", 200): 1}
        assert {method: sum(each.counts) for method, each in asked.durations.items()} == {"GET": 3, "PUT": 1}
        assert {method: sum(each.counts) for method, each in asked.turns.items()} == {"GET": 3, "PUT": 1}

    play_over_http(scenario, limits=HttpLimits(requests_per_s=50, burst=50))


PAGE = b"<html>Please log in.</html>"
FOREIGN_ANSWERS = [
    pytest.param(PAGE, "text/html", id="a page"),
    pytest.param(b"", "text/plain", id="nothing"),
    pytest.param(b"[]", "application/json", id="JSON that is not an object"),
    pytest.param(b'{"message":"hello"}', "application/json", id="an object without a kind"),
    pytest.param(b'{"items":[]}', "application/json", id="a list without a kind"),
    pytest.param(b'{"kind":"Greeting","apiVersion":"v1"}', "application/json", id="an object of another kind"),
    pytest.param(b'{"a":' * 100_000, "application/json", id="a deeply nested object"),
]
WRITES = [
    pytest.param(lambda client: client.create(CONFIG_MAP, NS, config_map()), id="create"),
    pytest.param(
        lambda client: client.create(CONFIG_MAP, NS, config_map(), is_answer_wanted=False), id="create, unread"
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
    async def scenario(scene: Scene) -> None:
        scene.server.faults = [Refuse(200, body=body, content_type=content_type)]
        with pytest.raises(NoAnswerError, match="the response does not come from an API server") as error:
            await request_(scene.client)
        assert error.value.is_outcome_unknown
        assert len(scene.server.asked) == 1

    play_over_http(scenario)


@pytest.mark.parametrize(("body", "content_type"), FOREIGN_ANSWERS)
@pytest.mark.parametrize("request_", READS)
def test_a_foreign_success_response_to_a_read_is_an_error(
    request_: Callable[[HttpClient], Awaitable[object]], body: bytes, content_type: str
) -> None:
    async def scenario(scene: Scene) -> None:
        scene.server.faults = [Refuse(200, body=body, content_type=content_type)]
        with pytest.raises(ServerError, match="the response does not come from an API server") as error:
            await request_(scene.client)
        assert error.value.can_help_to_retry

    play_over_http(scenario)


def test_html_instead_of_watch_events_is_an_error() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.local.create(CONFIG_MAP, NS, config_map())
        scene.server.faults = [Refuse(200, body=PAGE + b"\n", content_type="text/html", method="WATCH")]
        async with scene.client.watch(CONFIG_MAP, since="1") as watch:
            with pytest.raises(ServerError):
                await watch.next_batch()

    play_over_http(scenario)
