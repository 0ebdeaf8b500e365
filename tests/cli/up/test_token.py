"""The token of the administrator: from a flag, the environment or a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from mooring.cli.errors import InputError
from mooring.cli.up import command
from mooring.cli.up.command import _token, up


def test_a_file_holds_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    assert _token("", file) == "secret"
    assert _token("given", None) == "given"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no token; wanted one line without spaces"),
        (b"two words", "holds no token; wanted one line without spaces"),
        (b"two\nlines", "holds no token; wanted one line without spaces"),
        (b"\xff", "cannot be read as the token of the administrator"),
    ],
)
def test_a_bad_file(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        _token("", file)


def test_two_tokens_contradict_each_other(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    with pytest.raises(InputError, match="contradict each other"):
        _token("given", file)


def test_the_environment_has_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def note(token: str, file: Path | None) -> str:
        seen.append(token)
        raise InputError([])

    monkeypatch.setattr(command, "_token", note)
    CliRunner().invoke(up, ["--ephemeral"], env={"MOORING_TOKEN": "secret"})
    assert seen == ["secret"]
