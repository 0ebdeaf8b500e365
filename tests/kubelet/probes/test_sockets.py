"""Whether somebody listens. With real sockets, on loopback."""

from __future__ import annotations

import asyncio
import errno
import socket

import pytest

from mooring.kit.loop import run_real
from mooring.kubelet.probes.handlers import Answer, Outcome
from mooring.kubelet.probes.sockets import ask_socket, dial_error
from tests.ports import silent_port
from tests.waiting import LIMIT_S


def test_who_listens_is_alive() -> None:
    async def main() -> Answer:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            return await ask_socket("127.0.0.1", server.sockets[0].getsockname()[1], LIMIT_S)

    assert run_real(main()) == Answer(Outcome.SUCCESS)


def test_who_does_not_listen_is_not() -> None:
    with silent_port() as port:
        answer = run_real(ask_socket("127.0.0.1", port, LIMIT_S))

    assert answer == Answer(Outcome.FAILURE, f"dial tcp 127.0.0.1:{port}: connect: connection refused")


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
