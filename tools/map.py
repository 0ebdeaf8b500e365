"""Prints the first line of every module's docstring, by package: map.py [FOLDER]"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "mooring"


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    for folder in sorted({path.parent for path in root.rglob("*.py")}):
        print(f"\n{folder.relative_to(root.parent).as_posix()}/  {first_line(folder / '__init__.py')}")
        for path in sorted(folder.glob("*.py")):
            if path.name != "__init__.py":
                print(f"  {path.name:<36} {first_line(path)}")


def first_line(path: Path) -> str:
    """The first line of a module's docstring; empty if there is none."""
    if not path.is_file():
        return ""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


if __name__ == "__main__":
    main()
