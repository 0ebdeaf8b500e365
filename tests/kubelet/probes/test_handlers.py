"""exec, HTTP and TCP probes. HTTP and TCP against real servers on loopback.

The gRPC probe, against a minimal HTTP/2 server on loopback.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from aiohttp import web

from mooring.kit.loop import run, run_real
from mooring.kubelet.probes.handlers import (
    CommandError,
    CommandResult,
    CommandTimeout,
    ProbeError,
    ProbeOutcome,
    ProbeResult,
    dial_error,
    headers_of,
    probe_exec,
    probe_grpc,
    probe_http,
    probe_tcp,
    url_of,
)
from mooring.kubelet.views import ExecAction, HTTPGetAction, HTTPHeader
from tests.kubelet.harness import container_with
from tests.ports import silent_port
from tests.scheduler.extenders.builders import server_security
from tests.waiting import LIMIT_S


class Runner:
    def __init__(self, result: CommandResult | Exception) -> None:
        self._result = result
        self.ran: list[str] = []

    async def run_command(self, pod_uid: str, container: str, argv: Sequence[str], timeout_s: float) -> CommandResult:
        self.ran = list(argv)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


def exec_result(runner: Runner, *command: str) -> ProbeResult:
    one = container_with(env=[{"name": "A", "value": "1"}])
    return run(probe_exec(runner, "uid-1", one, ExecAction(command=command), 5.0))


@pytest.mark.parametrize(
    ("result", "wanted"),
    [
        pytest.param(CommandResult(0, b"fine"), ProbeResult(ProbeOutcome.SUCCESS, "fine"), id="0 is a success"),
        pytest.param(
            CommandResult(1, b"no file"), ProbeResult(ProbeOutcome.FAILURE, "no file"), id="anything else a failure"
        ),
        pytest.param(
            CommandResult(1, b"x" * 20_000),
            ProbeResult(ProbeOutcome.FAILURE, "x" * 10_240),
            id="which does not talk endlessly",
        ),
        pytest.param(
            CommandTimeout(),
            ProbeResult(ProbeOutcome.FAILURE, 'command timed out: "cat /tmp/x" timed out after 5s'),
            id="too slow is a failure",
        ),
    ],
)
def test_a_command_answers(result: CommandResult | Exception, wanted: ProbeResult) -> None:
    assert exec_result(Runner(result), "cat", "/tmp/x") == wanted


def test_a_command_that_cannot_be_started_is_no_answer() -> None:
    with pytest.raises(ProbeError, match="not found"):
        exec_result(Runner(CommandError('exec: "nope": executable file not found in $PATH')), "nope")


def test_plain_variables_are_known() -> None:
    runner = Runner(CommandResult(0, b""))

    exec_result(runner, "echo", "$(A) $(B)")

    assert runner.ran == ["echo", "1 $(B)"]


def test_a_listening_port_is_a_success() -> None:
    async def main() -> ProbeResult:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            return await probe_tcp("127.0.0.1", server.sockets[0].getsockname()[1], LIMIT_S)

    assert run_real(main()) == ProbeResult(ProbeOutcome.SUCCESS)


def test_a_port_without_a_listener_is_a_failure() -> None:
    with silent_port() as port:
        answer = run_real(probe_tcp("127.0.0.1", port, LIMIT_S))

    assert answer == ProbeResult(ProbeOutcome.FAILURE, f"dial tcp 127.0.0.1:{port}: connect: connection refused")


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        pytest.param(TimeoutError(), "dial tcp 10.0.0.7:80: i/o timeout", id="too slow"),
        pytest.param(
            OSError(errno.EHOSTUNREACH, "No route"), "dial tcp 10.0.0.7:80: connect: no route to host", id="no way"
        ),
        pytest.param(socket.gaierror(-2, "x"), "dial tcp: lookup 10.0.0.7: no such host", id="no such name"),
        pytest.param(OSError("something"), "dial tcp 10.0.0.7:80: something", id="something else"),
    ],
)
def test_errors_are_worded_as_go_words_them(error: OSError, wanted: str) -> None:
    assert dial_error("10.0.0.7", 80, error) == wanted


def test_addresses_of_version_6_stand_in_brackets() -> None:
    assert dial_error("::1", 80, TimeoutError()) == "dial tcp [::1]:80: i/o timeout"


def http_result(action: HTTPGetAction, *, timeout_s: float = LIMIT_S) -> tuple[ProbeResult, list[web.Request], int]:
    """Of a server with a few pages; what it was asked for, and its port."""
    requests: list[web.Request] = []

    async def page(request: web.Request) -> web.StreamResponse:
        requests.append(request)
        match request.path:
            case "/redirect":
                raise web.HTTPFound("/fine")
            case "/elsewhere":
                raise web.HTTPFound("http://elsewhere.invalid/")
            case "/round":
                raise web.HTTPFound("/round")
            case "/slow":
                await asyncio.Event().wait()
            case "/big":
                return web.Response(body=b"x" * 100_000)
        return web.Response(status=int(request.query.get("status", "200")), text="body")

    async def main() -> tuple[ProbeResult, int]:
        application = web.Application()
        application.router.add_get("/{tail:.*}", page)
        runner = web.AppRunner(application, shutdown_timeout=0.01)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            return await probe_http(action, "127.0.0.1", port, timeout_s), port
        finally:
            await runner.cleanup()

    answer, port = run_real(main())
    return answer, requests, port


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        pytest.param("/fine", ProbeResult(ProbeOutcome.SUCCESS, "body"), id="200"),
        pytest.param("fine?status=204", ProbeResult(ProbeOutcome.SUCCESS, ""), id="204, and a path without its stroke"),
        pytest.param(
            "/x?status=399",
            ProbeResult(ProbeOutcome.WARNING, "Probe terminated redirects, Response body: body"),
            id="399",
        ),
        pytest.param(
            "/x?status=400", ProbeResult(ProbeOutcome.FAILURE, "HTTP probe failed with statuscode: 400"), id="400"
        ),
        pytest.param(
            "/x?status=500", ProbeResult(ProbeOutcome.FAILURE, "HTTP probe failed with statuscode: 500"), id="500"
        ),
        pytest.param("/redirect", ProbeResult(ProbeOutcome.SUCCESS, "body"), id="followed on the same host"),
        pytest.param("/big", ProbeResult(ProbeOutcome.SUCCESS, "x" * 10_240), id="no more than 10 KiB is read"),
    ],
)
def test_a_status_is_an_answer(path: str, wanted: ProbeResult) -> None:
    assert http_result(HTTPGetAction(path=path))[0] == wanted


def test_a_redirect_to_somewhere_else_is_a_warning() -> None:
    answer, _, _ = http_result(HTTPGetAction(path="/elsewhere"))

    assert answer.outcome is ProbeOutcome.WARNING
    assert answer.text.startswith("Probe terminated redirects, Response body: ")


def test_redirects_are_limited() -> None:
    answer, requests, port = http_result(HTTPGetAction(path="/round"))

    assert answer == ProbeResult(
        ProbeOutcome.FAILURE, f'Get "http://127.0.0.1:{port}/round": stopped after 10 redirects'
    )
    assert len(requests) == 10


def test_any_certificate_will_do() -> None:
    async def main() -> ProbeResult:
        async def page(request: web.BaseRequest) -> web.Response:
            return web.Response(text="body")

        runner = web.ServerRunner(web.Server(page), shutdown_timeout=0.01)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_security()).start()
            action = HTTPGetAction(path="/", scheme="HTTPS")
            return await probe_http(action, "127.0.0.1", runner.addresses[0][1], LIMIT_S)
        finally:
            await runner.cleanup()

    assert run_real(main()) == ProbeResult(ProbeOutcome.SUCCESS, "body")


def test_a_container_that_hangs_up_is_a_failure() -> None:
    async def main() -> tuple[ProbeResult, int]:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await probe_http(HTTPGetAction(path="/"), "127.0.0.1", port, LIMIT_S), port

    answer, port = run_real(main())
    assert answer == ProbeResult(ProbeOutcome.FAILURE, f'Get "http://127.0.0.1:{port}/": EOF')


def test_a_slow_answer_is_a_failure() -> None:
    answer, _, port = http_result(HTTPGetAction(path="/slow"), timeout_s=0.1)

    why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert answer == ProbeResult(ProbeOutcome.FAILURE, f'Get "http://127.0.0.1:{port}/slow": {why}')


def test_a_closed_port_is_a_failure() -> None:
    with silent_port() as port:
        answer = run_real(probe_http(HTTPGetAction(path="/"), "127.0.0.1", port, LIMIT_S))

    why = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert answer == ProbeResult(ProbeOutcome.FAILURE, f'Get "http://127.0.0.1:{port}/": {why}')


@pytest.mark.parametrize(
    ("headers", "name", "wanted"),
    [
        pytest.param([], "User-Agent", "kube-probe/1.36", id="who asks"),
        pytest.param([], "Accept", "*/*", id="anything will do"),
        pytest.param([], "Accept-Encoding", None, id="but nothing compressed"),
        pytest.param([("Accept", "")], "Accept", None, id="an empty Accept is none"),
        pytest.param([("user-agent", "me")], "User-Agent", "me", id="another name"),
        pytest.param([("Host", "web.example")], "Host", "web.example", id="for another host"),
        pytest.param([("X-Key", "1")], "X-Key", "1", id="whatever it wants"),
    ],
)
def test_headers_are_sent(headers: list[tuple[str, str]], name: str, wanted: str | None) -> None:
    wished = tuple(HTTPHeader(name=key, value=value) for key, value in headers)

    _, requests, _ = http_result(HTTPGetAction(path="/", http_headers=wished))

    assert requests[0].headers.get(name) == wanted


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        pytest.param(lambda: HTTPGetAction(path="/a?b=c"), "http://10.0.0.7:80/a?b=c", id="as a rule"),
        pytest.param(lambda: HTTPGetAction(path="/", scheme="HTTPS"), "https://10.0.0.7:80/", id="with TLS"),
        pytest.param(lambda: HTTPGetAction(path="/", host="::1"), "http://[::1]:80/", id="another host"),
    ],
)
def test_addresses(make: Callable[[], HTTPGetAction], wanted: str) -> None:
    assert url_of(make(), "10.0.0.7", 80) == wanted


def test_an_address_that_cannot_be_is_no_answer() -> None:
    with pytest.raises(ProbeError, match="is not a URL"):
        run_real(probe_http(HTTPGetAction(path="/", host="[::"), "127.0.0.1", 80, 1.0))


def test_a_header_may_come_twice() -> None:
    headers = headers_of([HTTPHeader(name="X", value="1"), HTTPHeader(name="X", value="2")])

    assert [value for name, value in headers if name == "X"] == ["1", "2"]


SETTINGS = bytes.fromhex("000006 04 00 00000000 0003 00000064")
PING = bytes.fromhex("000008 06 00 00000000 0102030405060708")
WINDOW = bytes.fromhex("000004 08 00 00000000 00003fff")
HEAD = bytes.fromhex("000001 01 04 00000001 88")
TRAILERS = bytes.fromhex("000001 01 05 00000001 88")
RESET = bytes.fromhex("000004 03 00 00000001 00000008")
GOAWAY = bytes.fromhex("000008 07 00 00000000 00000000 00000000")


def message(health: int) -> bytes:
    body = b"\x00\x00\x00\x00\x02\x08" + bytes((health,)) if health else b"\x00\x00\x00\x00\x00"
    return len(body).to_bytes(3, "big") + bytes.fromhex("00 00 00000001") + body


def grpc_result(said: bytes | None, *, service: str = "web", timeout_s: float = LIMIT_S) -> tuple[ProbeResult, bytes]:
    """The result of a health check, and the request that the server got."""
    heard = bytearray()
    has_heard_all = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read(4096))
        if said is not None:
            writer.write(said)
        with suppress(ConnectionError):
            while more := await reader.read(4096):
                heard.extend(more)
        writer.close()
        has_heard_all.set()

    async def main() -> ProbeResult:
        async with asyncio.timeout(2 * LIMIT_S), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            answer = await probe_grpc("127.0.0.1", server.sockets[0].getsockname()[1], service, timeout_s)
            await has_heard_all.wait()
            return answer

    return run_real(main()), bytes(heard)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        pytest.param(
            SETTINGS + PING + WINDOW + HEAD + message(1) + TRAILERS,
            ProbeResult(ProbeOutcome.SUCCESS, "service healthy"),
            id="it serves",
        ),
        pytest.param(
            SETTINGS + HEAD + message(2) + TRAILERS,
            ProbeResult(ProbeOutcome.FAILURE, 'service unhealthy (responded with "NOT_SERVING")'),
            id="it does not",
        ),
        pytest.param(
            SETTINGS + HEAD + message(0) + TRAILERS,
            ProbeResult(ProbeOutcome.FAILURE, 'service unhealthy (responded with "UNKNOWN")'),
            id="it does not know",
        ),
        pytest.param(
            SETTINGS + TRAILERS,
            ProbeResult(
                ProbeOutcome.FAILURE,
                "error: health rpc probe failed: the response has no health (the server may lack "
                "grpc.health.v1.Health, or the service)",
            ),
            id="it refuses the call",
        ),
        pytest.param(
            SETTINGS + RESET,
            ProbeResult(ProbeOutcome.FAILURE, "error: health rpc probe failed: the server aborted the call"),
            id="it breaks off",
        ),
        pytest.param(
            GOAWAY,
            ProbeResult(ProbeOutcome.FAILURE, "error: health rpc probe failed: the server aborted the call"),
            id="it goes away",
        ),
        pytest.param(
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            ProbeResult(ProbeOutcome.FAILURE, "error: health rpc probe failed: the server does not speak HTTP/2"),
            id="another protocol",
        ),
    ],
)
def test_a_server_tells_its_health(said: bytes, wanted: ProbeResult) -> None:
    assert grpc_result(said)[0] == wanted


def test_the_service_is_named_and_settings_and_pings_are_answered() -> None:
    _, heard = grpc_result(SETTINGS + PING + HEAD + message(1) + TRAILERS, service="web")

    assert heard.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"/grpc.health.v1.Health/Check" in heard
    assert b"\x00\x00\x00\x00\x05\x0a\x03web" in heard
    assert heard.endswith(bytes.fromhex("000000 04 01 00000000 000008 06 01 00000000 0102030405060708"))


def test_a_server_that_says_nothing_is_too_slow() -> None:
    answer, _ = grpc_result(None, timeout_s=0.1)

    assert answer == ProbeResult(ProbeOutcome.FAILURE, "timeout: health rpc did not complete within 0s")


def test_a_closed_grpc_port_is_a_failure() -> None:
    with silent_port() as port:
        answer = run_real(probe_grpc("127.0.0.1", port, "", 2.0))

    why = f'timeout: failed to connect service "127.0.0.1:{port}" within 2s: context deadline exceeded'
    assert answer == ProbeResult(ProbeOutcome.FAILURE, why)
