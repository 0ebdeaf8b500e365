"""Write docs/images/*.svg: what commands print about the example clusters.

Usage: python tools/picture.py. tests/docs/test_readme.py fails when a picture does not show what its commands print.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

TREE = Path(__file__).parents[1]
COLUMNS = 80


@dataclass(frozen=True, slots=True)
class Picture:
    """Commands, and a terminal that shows what they print."""

    name: str
    commands: tuple[str, ...]
    """Without `mooring`."""

    @property
    def file(self) -> Path:
        return TREE / "docs" / "images" / f"{self.name}.svg"

    def printed(self) -> list[str]:
        """What each command prints on a terminal of 80 columns."""
        return [_printed(command.split()) for command in self.commands]

    def drawn(self) -> str:
        console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
        for number, (command, output) in enumerate(zip(self.commands, self.printed(), strict=True)):
            if number:
                console.print()
            console.print(Text(f"$ mooring {command}", style="bold"))
            console.print(Text(output.rstrip()))
        picture = console.export_svg(title="", unique_id=self.name)
        return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # rich names fonts of a web server


PICTURES = (
    Picture("plan", ("plan --cluster examples/clusters/shop.yaml -l pool=old",)),
    Picture("explain", ("explain -f examples/clusters/harbour.yaml harbour/coastguard harbour/tug-2",)),
)


def _printed(arguments: list[str]) -> str:
    program = f"from mooring.cli.main import main; main(prog_name='mooring', args={arguments!r})"
    run = subprocess.run([sys.executable, "-c", program], cwd=TREE, capture_output=True, text=True, check=True)
    return run.stdout


if __name__ == "__main__":
    for picture in PICTURES:
        picture.file.parent.mkdir(parents=True, exist_ok=True)
        picture.file.write_text(picture.drawn(), encoding="utf-8")
