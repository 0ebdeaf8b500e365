"""Screens: what a command prints, kept in files and compared to the letter.

Each file in `screens/` begins with a command (`$ mooring explain …`, run in the repository's root at 80 columns);
below it stands everything that the command prints, and its exit code if that is not 0.

    python -m tests.cli.screens      writes all of them anew: check the difference before you commit it
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from click.testing import CliRunner, Result

from mooring.cli.main import main

ROOT = Path(__file__).parent.parent.parent
SCREENS = Path(__file__).parent / "screens"
PROMPT = "$ mooring "


def run(*arguments: str, stdin: str | bytes | None = None, columns: int = 80) -> Result:
    """The result of `mooring` with these arguments."""
    environment = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    return CliRunner().invoke(main, arguments, input=stdin, env=environment, prog_name="mooring")


def screen_of(command: str) -> str:
    """The command and what it prints."""
    result = run(*shlex.split(command))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    code = f"[exit code {result.exit_code}]\n" if result.exit_code else ""
    return f"{PROMPT}{command}\n{result.output}{code}"


def command_of(screen: str) -> str:
    first = screen.partition("\n")[0]
    assert first.startswith(PROMPT), f"a screen begins with {PROMPT!r}, this one with {first!r}"
    return first.removeprefix(PROMPT)


if __name__ == "__main__":
    os.chdir(ROOT)
    for file in sorted(SCREENS.glob("*.txt")):
        file.write_text(screen_of(command_of(file.read_text(encoding="utf-8"))), encoding="utf-8")
