"""Write docs/images/explain.svg: what `mooring explain` prints about two pods of the example cluster.

Usage: python tools/picture.py. tests/docs/test_readme.py fails when the picture does not show what the command prints.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

TREE = Path(__file__).parents[1]
PICTURE = TREE / "docs" / "images" / "explain.svg"
COLUMNS = 80
ARGUMENTS = ["explain", "-f", "examples/clusters/harbour.yaml", "harbour/coastguard", "harbour/tug-2"]
COMMAND = f"mooring {' '.join(ARGUMENTS)}"


def printed() -> str:
    """The output of the command on a terminal of 80 columns."""
    program = f"from mooring.cli.main import main; main(prog_name='mooring', args={ARGUMENTS!r})"
    run = subprocess.run([sys.executable, "-c", program], cwd=TREE, capture_output=True, text=True, check=True)
    return run.stdout


def drawn(output: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {COMMAND}", style="bold"))
    console.print(Text(output.rstrip()))
    picture = console.export_svg(title="", unique_id="explain")
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # rich names fonts of a web server


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(drawn(printed()), encoding="utf-8")
