"""How `mooring scheduler` fails to start: one line, exit code 1."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mooring.cli.main import main


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        yield somebody.getsockname()[1]


def typed(port: int, *flags: str) -> tuple[int, str]:
    surroundings = ("--master=http://127.0.0.1:9", "--bind-address=127.0.0.1", f"--secure-port={port}")
    result = CliRunner().invoke(main, ["scheduler", *surroundings, "--leader-elect=false", *flags])
    return result.exit_code, result.output


def test_a_port_that_is_taken(taken: int) -> None:
    code, said = typed(taken)
    assert code == 1
    assert f"mooring: cannot listen on 127.0.0.1:{taken}" in said


def test_authorities_that_are_not_there(tmp_path: Path) -> None:
    code, said = typed(1, f"--client-ca-file={tmp_path / 'none'}")
    assert code == 1
    assert f"mooring: {tmp_path / 'none'}: cannot be read" in said


def test_flags_that_change_nothing_are_told(taken: int) -> None:
    _, said = typed(taken, "--feature-gates=A=true", "--contention-profiling=true", "--vmodule=a=3")
    assert "--feature-gates=[A=true] has no effect here" in said
    assert "--vmodule=[a=3] has no effect here" in said
    assert "--contention-profiling" not in said, "the default is no news"
