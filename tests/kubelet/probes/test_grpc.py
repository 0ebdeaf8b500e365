"""The gRPC probe, against a minimal HTTP/2 server on loopback."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from mooring.kit.loop import run_real
from mooring.kubelet.probes.grpc import probe_grpc
from mooring.kubelet.probes.handlers import ProbeOutcome, ProbeResult
from tests.ports import silent_port
from tests.waiting import LIMIT_S

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


def asked(said: bytes | None, *, service: str = "web", timeout_s: float = LIMIT_S) -> tuple[ProbeResult, bytes]:
    """Of a server that says so, or nothing at all; and what it was told."""
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
            id="it speaks something else",
        ),
    ],
)
def test_a_server_tells_its_health(said: bytes, wanted: ProbeResult) -> None:
    assert asked(said)[0] == wanted


def test_the_service_is_named_and_settings_and_pings_are_answered() -> None:
    _, heard = asked(SETTINGS + PING + HEAD + message(1) + TRAILERS, service="web")

    assert heard.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"/grpc.health.v1.Health/Check" in heard
    assert b"\x00\x00\x00\x00\x05\x0a\x03web" in heard
    assert heard.endswith(bytes.fromhex("000000 04 01 00000000 000008 06 01 00000000 0102030405060708"))


def test_a_server_that_says_nothing_is_too_slow() -> None:
    answer, _ = asked(None, timeout_s=0.1)

    assert answer == ProbeResult(ProbeOutcome.FAILURE, "timeout: health rpc did not complete within 0s")


def test_nobody_there() -> None:
    with silent_port() as port:
        answer = run_real(probe_grpc("127.0.0.1", port, "", 2.0))

    why = f'timeout: failed to connect service "127.0.0.1:{port}" within 2s: context deadline exceeded'
    assert answer == ProbeResult(ProbeOutcome.FAILURE, why)
