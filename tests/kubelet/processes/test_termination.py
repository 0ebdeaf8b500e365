"""The last words of a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.kubelet.processes.termination import FALLBACK_POLICY, termination_message

FILE_POLICY = "File"


def log(*texts: str) -> str:
    return "".join(f"2026-01-01T00:00:00.000000000Z stderr F {text}\n" for text in texts)


@pytest.mark.parametrize(
    ("words", "written", "policy", "code", "message"),
    [
        pytest.param("bye", "", FILE_POLICY, 1, "bye", id="what it wrote"),
        pytest.param("bye", "", FILE_POLICY, 0, "bye", id="also when all is well"),
        pytest.param("", log("oops"), FILE_POLICY, 1, "", id="nothing"),
        pytest.param("", log("a", "b"), FALLBACK_POLICY, 1, "a\nb\n", id="the end of its log"),
        pytest.param("", log("a"), FALLBACK_POLICY, 0, "", id="its log only if it failed"),
        pytest.param("bye", log("a"), FALLBACK_POLICY, 1, "bye", id="its words before its log"),
        pytest.param("x" * 5000, "", FILE_POLICY, 1, "x" * 4096, id="not too many words"),
        pytest.param(
            "", log(*map(str, range(100))), FALLBACK_POLICY, 1, "".join(f"{n}\n" for n in range(20, 100)), id="80 lines"
        ),
        pytest.param("", log("x" * 3000), FALLBACK_POLICY, 1, "x" * 2047 + "\n", id="2,048 bytes"),
    ],
)
def test_what_is_told(tmp_path: Path, words: str, written: str, policy: str, code: int, message: str) -> None:
    (tmp_path / "words").write_text(words)
    (tmp_path / "0.log").write_text(written)
    assert termination_message(tmp_path / "words", tmp_path / "0.log", policy, code) == message


def test_files_that_are_not_there_say_nothing(tmp_path: Path) -> None:
    assert termination_message(tmp_path / "words", tmp_path / "0.log", FALLBACK_POLICY, 1) == ""
