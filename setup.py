"""Writes the commit into wheels: `mooring version` shows it. Everything else is in pyproject.toml."""

import os
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithCommit(build_py):
    """Adds `mooring/commit.txt`, from $MOORING_COMMIT or git. Without either there is no such file."""

    def run(self) -> None:
        super().run()
        commit = os.environ.get("MOORING_COMMIT") or _commit()
        if commit and not self.editable_mode:
            target = Path(self.build_lib) / "mooring" / "commit.txt"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f"{commit}\n", encoding="utf-8")


def _commit() -> str:
    here = Path(__file__).parent
    if not (here / ".git").exists():
        return ""  # git would look in the directories above
    try:
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return asked.stdout.strip()


setup(cmdclass={"build_py": BuildWithCommit})
