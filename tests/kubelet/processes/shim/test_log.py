"""Log files: CRI format, rotation."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.kubelet.processes.shim.log import LINE_BYTES_MAX, LOG_FILES_MAX, LogFile


def entries(path: Path) -> list[str]:
    """Without their times."""
    return [line.split(" ", 1)[1] for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("writes", "lines"),
    [
        pytest.param([b"a\nb\n"], ["stdout F a", "stdout F b"], id="two lines at once"),
        pytest.param([b"a", b"b\n"], ["stdout F ab"], id="a line in two parts"),
        pytest.param([b"a"], ["stdout F a"], id="a line without an end"),
        pytest.param([b"\n"], ["stdout F "], id="an empty line"),
        pytest.param(
            [b"x" * (LINE_BYTES_MAX + 2) + b"\n"], ["stdout P " + "x" * LINE_BYTES_MAX, "stdout F xx"], id="long"
        ),
        pytest.param(
            [b"x" * LINE_BYTES_MAX, b"y\n"], ["stdout P " + "x" * LINE_BYTES_MAX, "stdout F y"], id="long, in two parts"
        ),
    ],
)
def test_what_is_written_becomes_lines(tmp_path: Path, writes: list[bytes], lines: list[str]) -> None:
    log = LogFile(str(tmp_path / "0.log"), 1 << 20)
    for data in writes:
        log.write("stdout", data)
    log.close()
    assert entries(tmp_path / "0.log") == lines


def test_the_two_streams_do_not_mix_their_lines(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "0.log"), 1 << 20)
    log.write("stdout", b"to be ")
    log.write("stderr", b"oops\n")
    log.write("stdout", b"or not\n")
    log.close()
    assert entries(tmp_path / "0.log") == ["stderr F oops", "stdout F to be or not"]


def test_full_files_are_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "0.log"), 200)
    for number in range(100):
        log.write("stdout", b"line %d\n" % number)
    log.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["0.log", *(f"0.log.{number}" for number in range(1, LOG_FILES_MAX))]
    assert all(path.stat().st_size <= 200 for path in tmp_path.iterdir())
    kept = [line for number in range(LOG_FILES_MAX - 1, 0, -1) for line in entries(tmp_path / f"0.log.{number}")]
    kept += entries(tmp_path / "0.log")
    assert kept == [f"stdout F line {number}" for number in range(100 - len(kept), 100)]
