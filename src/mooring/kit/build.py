"""Which build this is: version, commit, Python and platform.

1. The commit is in `commit.txt`, which building a wheel writes (`setup.py`). In a source tree it is read from `.git`,
   without running git.
2. Without either, as in a copy of the source, it is empty.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mooring import __version__

KUBERNETES_VERSION = "v1.36.4"
"""The version of Kubernetes whose behaviour this is."""
COMMIT_FILE = "commit.txt"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
"""Go's names of machines."""
_PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Build:
    version: str
    commit: str
    """Forty hexadecimal digits, or empty."""
    python: str
    implementation: str
    platform: str
    """As in Go: `linux/amd64`."""


@cache
def build() -> Build:
    """This build."""
    machine = platform.machine()
    return Build(
        version=__version__,
        commit=commit_of(_PACKAGE),
        python=platform.python_version(),
        implementation=platform.python_implementation(),
        platform=f"{sys.platform}/{ARCHITECTURES.get(machine, machine)}",
    )


def commit_of(package: Path) -> str:
    """The commit of an installed package, or of the source tree that it is in (`src/mooring`)."""
    written = _text(package / COMMIT_FILE)
    return written or checked_out_commit(package.parent.parent)


def checked_out_commit(tree: Path) -> str:
    """The commit that is checked out in a work tree; empty if it is none."""
    git = tree / ".git"
    if git.is_file():  # a linked work tree: the file names its directory
        git = tree / _text(git).removeprefix("gitdir: ")
    head = _text(git / "HEAD")
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    common = _text(git / "commondir")
    shared = git / common if common else git
    return _text(git / name) or _text(shared / name) or _packed(shared / "packed-refs", name)


def _packed(file: Path, name: str) -> str:
    for line in _text(file).splitlines():
        commit, _, packed_name = line.partition(" ")
        if packed_name == name:
            return commit
    return ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
