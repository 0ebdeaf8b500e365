"""Log formats, and how `mooring scheduler` fails to start: one line, exit code 1."""

from __future__ import annotations

import io
import json
import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mooring.cli.main import main
from mooring.cli.scheduler.run import set_up_logs, set_verbosity


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("mooring")
    handlers, level, our_level = list(root.handlers), root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)


def written(form: str, verbosity: int = 0) -> str:
    stream = io.StringIO()
    set_up_logs(form, verbosity, stream)
    logger = logging.getLogger("mooring.test")
    logger.debug("quiet %d", 1)
    logger.log(logging.INFO - 2, "in passing")
    logger.info("said %s", "plainly")
    logger.warning("careful")
    try:
        raise ValueError("the reason")
    except ValueError:
        logger.exception("it failed")
    return stream.getvalue()


def test_text() -> None:
    lines = written("text").splitlines()
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_run\.py:\d+\] said plainly", lines[0])
    assert lines[1].startswith("W")
    assert lines[2].startswith("E")
    assert lines[-1] == "ValueError: the reason"


def test_json() -> None:
    info, warning, error = (json.loads(line) for line in written("json").splitlines())
    assert (info["msg"], info["v"]) == ("said plainly", 0)
    assert warning["level"] == "warning"
    assert error["err"] == "the reason"
    assert "v" not in error
    assert "ValueError" in error["stacktrace"]


def test_json_says_how_loud_a_line_is() -> None:
    quiet, in_passing, info, *_ = (json.loads(line) for line in written("json", 4).splitlines())
    assert [quiet["v"], in_passing["v"], info["v"]] == [4, 2, 0]


@pytest.mark.parametrize(
    ("verbosity", "shown"),
    [
        (-1, []),
        (0, []),
        (1, []),
        (2, ["in passing"]),
        (3, ["in passing"]),
        (4, ["quiet 1", "in passing"]),
        (9, ["quiet 1", "in passing"]),
    ],
)
def test_verbosity(verbosity: int, shown: list[str]) -> None:
    told = written("text", verbosity)
    assert [line for line in ("quiet 1", "in passing") if line in told] == shown
    set_verbosity(0)
    assert logging.getLogger("mooring").level == logging.INFO


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
