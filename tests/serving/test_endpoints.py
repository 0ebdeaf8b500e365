"""Pages of a component's port: health, metrics, the event loop."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import LoopMonitor, run
from mooring.serving.endpoints import Check, configuration_page, flags_page, health_pages, status_page
from mooring.serving.loop_metrics import LoopMetrics
from mooring.serving.pages import (
    PIECE_BYTES,
    PageRequest,
    PageResponse,
    failed,
    forbidden,
    masked,
    named_namespaces,
    namespaces_of,
    not_found,
    unauthorized,
)

GOOD: Check = lambda: ""  # noqa: E731
BAD: Check = lambda: "it hurts"  # noqa: E731


def requested(query: dict[str, list[str]] | None = None) -> PageRequest:
    return PageRequest("GET", "/readyz", query or {})


@pytest.mark.parametrize(
    ("checks", "query", "code", "body"),
    [
        pytest.param({"a": GOOD}, {}, 200, "ok", id="good"),
        pytest.param({}, {"verbose": [""]}, 200, "[+]ping ok\nreadyz check passed\n", id="no checks: ping"),
        pytest.param(
            {"a": GOOD, "b": GOOD},
            {"verbose": [""]},
            200,
            "[+]a ok\n[+]b ok\nreadyz check passed\n",
            id="good, verbose",
        ),
        pytest.param(
            {"a": GOOD, "b": BAD},
            {},
            500,
            "[+]a ok\n[-]b failed: reason withheld\nreadyz check failed\n",
            id="bad, always verbose without reasons",
        ),
        pytest.param(
            {"a": GOOD, "b": BAD},
            {"exclude": ["b"], "verbose": [""]},
            200,
            "[+]a ok\n[+]b excluded: ok\nreadyz check passed\n",
            id="excluded",
        ),
        pytest.param(
            {"a": GOOD},
            {"exclude": ["y", "x"], "verbose": [""]},
            200,
            '[+]a ok\nwarn: some health checks cannot be excluded: no matches for "x","y"\nreadyz check passed\n',
            id="unknown checks excluded",
        ),
    ],
)
def test_health_page_with_all_checks(
    checks: dict[str, Check], query: dict[str, list[str]], code: int, body: str
) -> None:
    answer = health_pages({"readyz": checks})["/readyz"](requested(query))
    assert (answer.code, answer.body.decode()) == (code, body)


@pytest.mark.parametrize(
    ("check", "code", "body"), [(GOOD, 200, "ok"), (BAD, 500, "internal server error: it hurts\n")], ids=["good", "bad"]
)
def test_health_page_of_one_check(check: Check, code: int, body: str) -> None:
    answer = health_pages({"healthz": {"a": check}})["/healthz/a"](requested())
    assert (answer.code, answer.body.decode()) == (code, body)


def test_flags_are_sorted() -> None:
    body = flags_page("kube-scheduler", {"v": "2", "config": ""}).body.decode()
    assert body.startswith("\nkube-scheduler flagz\nWarning: This endpoint is not meant to be machine parseable")
    assert body.endswith("\nconfig=\nv=2\n")


def test_status_page() -> None:
    body = status_page(
        "kube-scheduler",
        started_wall_s=1_767_225_600.0,
        up_s=3 * 3600 + 4 * 60 + 5.9,
        version="0.1.0",
        emulates="1.36",
        paths=("/readyz", "/healthz"),
    ).body.decode()
    assert "Started= Thu Jan  1 00:00:00 UTC 2026\nUp= 3 hr 04 min 05 sec\n" in body
    assert body.endswith("Binary version= 0.1.0\nEmulation version= 1.36\nPaths= /healthz /readyz\n")


def test_configuration_page() -> None:
    assert configuration_page({"a": 1}).body == b'{"componentconfig": {"a": 1}}'


# --- Error responses with the texts of kube-scheduler ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (unauthorized(), 401, "Unauthorized"),
        (forbidden("jane", "get", "/metrics"), 403, 'forbidden: User "jane" cannot get path "/metrics"'),
        (
            forbidden("<b>", "get", "/a&b", "no role"),
            403,
            'forbidden: User "&lt;b&gt;" cannot get path "/a&amp;b": no role',
        ),
        (failed("a bug"), 500, "Internal error occurred: a bug"),
    ],
    ids=["unauthorized", "forbidden", "forbidden with a reason", "a bug"],
)
def test_error_responses_are_status_objects(answer: PageResponse, code: int, message: str) -> None:
    status = json.loads(answer.body)
    assert (answer.code, status["code"], status["message"], status["kind"]) == (code, code, message, "Status")


def test_not_found_response() -> None:
    assert (not_found().code, not_found().body) == (404, b"404 page not found\n")


@pytest.mark.parametrize(
    ("query", "number"), [({}, 30.0), ({"seconds": ["5"]}, 5.0), ({"seconds": ["x"]}, 30.0), ({"seconds": []}, 30.0)]
)
def test_number_reads_a_query_parameter_with_a_default(query: dict[str, list[str]], number: float) -> None:
    assert PageRequest("GET", "/", query).number("seconds", 30.0) == number


# --- Names of objects in namespaces that the caller may not read are masked


BODY = b'{"pod": "secret/db-0", "text": "0/4 nodes: evict open/web-1 and secret/db-0, not secret/db-1."}'
NAMESPACES = frozenset({"open", "secret"})


def seen(body: bytes, *readable: str, requested: Iterable[str] = ()) -> PageResponse:
    async def may_read(namespace: str) -> bool:
        return namespace in readable

    clock = VirtualClock()

    async def main() -> PageResponse:
        named = await named_namespaces(body, NAMESPACES, clock)
        response = PageResponse(body, namespaces=named, requested_namespaces=namespaces_of(requested))
        return await masked(PageRequest("GET", "/", {}), response, may_read, clock)

    return run(main(), clock)


@pytest.mark.parametrize(
    ("readable", "body"),
    [
        (("",), BODY),
        (("open", "secret"), BODY),
        (("open",), b'{"pod": "hidden/1", "text": "0/4 nodes: evict open/web-1 and hidden/1, not hidden/2."}'),
        ((), b'{"pod": "hidden/1", "text": "0/4 nodes: evict hidden/2 and hidden/1, not hidden/3."}'),
    ],
)
def test_equal_names_get_equal_masks(readable: tuple[str, ...], body: bytes) -> None:
    assert seen(BODY, *readable).body == body


@pytest.mark.parametrize(
    "body",
    [
        b"node.kubernetes.io/unschedulable, example.com/secret/x, my-secret/x, 3/4",
        b"secret: nothing is named",
        b"other/pod of a namespace that does not exist",
    ],
)
def test_text_that_is_not_a_name_is_not_masked(body: bytes) -> None:
    response = seen(body)
    assert (response.body, response.namespaces) == (body, frozenset())


def test_a_request_for_a_pod_in_an_unreadable_namespace_is_forbidden() -> None:
    for body in (BODY, b"[]"):  # whether it exists or not
        response = seen(body, "open", requested=["secret/db-0"])
        assert (response.code, response.body) == (403, b'forbidden: you cannot list pods in the namespace "secret"\n')
    assert seen(b'["open/web-1"]', "open", requested=["open/web-1", "no-namespace", "a,b/c", "a\nb/c"]).code == 200


def test_a_long_body_is_masked_in_pieces_without_splitting_names() -> None:
    names = b", ".join(b"secret/db-%d" % (number % 7) for number in range(PIECE_BYTES // 3))
    masks = b", ".join(b"hidden/%d" % (number % 7 + 1) for number in range(PIECE_BYTES // 3))
    assert seen(names, "open").body == masks
    assert seen(b"secret/" + b"x" * (2 * PIECE_BYTES)).body == b"hidden/1"


# --- The metrics of the event loop


def test_loop_metrics_contain_histograms_and_longest_intervals_of_both_clocks() -> None:
    monitor, registry = LoopMonitor(), CollectorRegistry()
    registry.register(LoopMetrics(monitor))
    monitor.wall.note(0.4)
    monitor.cpu.note(0.03)
    lines = generate_latest(registry).decode().splitlines()
    for line in (
        'mooring_event_loop_blocked_seconds_bucket{le="0.3"} 0.0',
        'mooring_event_loop_blocked_seconds_bucket{le="0.5"} 1.0',
        "mooring_event_loop_blocked_seconds_sum 0.4",
        "mooring_event_loop_blocked_longest_seconds 0.4",
        'mooring_event_loop_blocked_cpu_seconds_bucket{le="0.05"} 1.0',
        "mooring_event_loop_blocked_cpu_longest_seconds 0.03",
    ):
        assert line in lines
