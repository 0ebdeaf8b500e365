"""Log formats and levels."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from mooring.kit.logs import fields, level_of, set_level, start_logs


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
    start_logs(form, level_of(verbosity), stream)
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
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] said plainly", lines[0])
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


def test_json_has_the_fields_of_a_line_and_names_its_module_once() -> None:
    stream = io.StringIO()
    start_logs("json", logging.INFO, stream)
    logging.getLogger("mooring.test").info("pod %s", "a/b", extra=fields(pod="a/b", node="n", plugin="", reason=None))
    line = json.loads(stream.getvalue())
    assert {name: line[name] for name in line if name not in ("ts", "caller", "v")} == {
        "msg": "pod a/b",
        "pod": "a/b",
        "node": "n",
    }
    assert re.fullmatch(r"kit/test_logs\.py:\d+", line["caller"])


def test_a_field_that_is_an_error_becomes_its_text() -> None:
    stream = io.StringIO()
    start_logs("json", logging.INFO, stream)
    logging.getLogger("mooring.test").info("failed", extra=fields(reason=ValueError("no room")))
    assert json.loads(stream.getvalue())["reason"] == "no room"


def test_libraries_are_not_debugged() -> None:
    stream = io.StringIO()
    start_logs("text", logging.DEBUG, stream)
    logging.getLogger("asyncio").debug("Using selector")
    assert stream.getvalue() == ""


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
    set_level(level_of(0))
    assert logging.getLogger("mooring").level == logging.INFO
