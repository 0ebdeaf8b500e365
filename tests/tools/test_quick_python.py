"""Which Python `make` sets up with: the usual one, unless another is clearly quicker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.waiting import LIMIT_S

SCRIPT = Path(__file__).parents[2] / "tools" / "quick_python.sh"


def python(directory: Path, name: str, version: str, microseconds: int) -> Path:
    """Something that answers as a Python of that speed would."""
    path = directory / name
    path.write_text(f'#!/bin/sh\ncase "$2" in *ensurepip*) echo "{path} {version}" ;; *) echo {microseconds} ;; esac\n')
    path.chmod(0o755)
    return path


def broken(directory: Path, name: str) -> Path:
    path = directory / name
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


def choose(*candidates: Path) -> tuple[str, str]:
    done = subprocess.run(
        [str(SCRIPT), *map(str, candidates)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize(
    ("other_us", "taken"),
    [
        pytest.param(40_000, "other", id="clearly quicker is taken"),
        pytest.param(95_000, "usual", id="a little quicker may be noise"),
        pytest.param(150_000, "usual", id="slower is left"),
    ],
)
def test_the_usual_one_stays_unless_another_is_clearly_quicker(tmp_path: Path, other_us: int, taken: str) -> None:
    usual, other = python(tmp_path, "usual", "3.11.7", 100_000), python(tmp_path, "other", "3.12.1", other_us)
    chosen, said = choose(usual, other)
    assert chosen == str(tmp_path / taken)
    assert bool(said) is (taken == "other")


def test_what_was_taken_is_said_with_how_to_keep_the_usual_one(tmp_path: Path) -> None:
    usual, other = python(tmp_path, "usual", "3.11.7", 100_000), python(tmp_path, "other", "3.12.1", 50_000)
    assert choose(usual, other)[1] == (
        f"python: {other} (3.12.1) is 2.0 times as quick as {usual} (3.11.7) and is taken; "
        "PYTHON=python3 keeps that one"
    )


def test_one_that_lacks_a_part_is_no_candidate(tmp_path: Path) -> None:
    usual = python(tmp_path, "usual", "3.11.7", 100_000)
    assert choose(broken(tmp_path, "old"), usual) == (str(usual), "")


def test_without_a_candidate_the_name_is_left_to_whoever_uses_it(tmp_path: Path) -> None:
    assert choose(broken(tmp_path, "old")) == ("python3", "")
