"""The recordings, and a server to play them against: `mooring up` in a process of its own, over TLS."""

from __future__ import annotations

import json
import lzma
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT_S

ADMIN_TOKEN = "admin-token"
LIMITED_TOKEN = "limited-token"
DISABLED = "--disable-admission-plugins=ServiceAccount"
"""As of the servers that were recorded."""


def read_transcripts(file: str) -> dict[str, dict[str, Any]]:
    """Recorded transcripts by name."""
    with lzma.open(Path(__file__).parent / file, "rt", encoding="utf-8") as lines:
        return {transcript["name"]: transcript for transcript in map(json.loads, lines)}


@dataclass(frozen=True, slots=True)
class Served:
    """A server that answers."""

    url: str
    kubeconfig: Path


@contextmanager
def serving(directory: Path, *options: str) -> Iterator[Served]:
    """`mooring up` with these options, on a free port; ended in order at the end of the block."""
    tokens = directory / "tokens.csv"
    tokens.write_text(f'{LIMITED_TOKEN},limited,2,"limited-group"\n', encoding="utf-8")
    kubeconfig = directory / "kubeconfig"
    command = [sys.executable, "-m", "mooring", "up", "--port", "0", "--token", ADMIN_TOKEN]
    command += ["--token-auth-file", str(tokens), "--anonymous-auth", "--kubeconfig", str(kubeconfig)]
    command += [DISABLED, *options]
    with (
        open(directory / "server.log", "wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            yield Served(_url_in(process, directory / "server.log"), kubeconfig)
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def _url_in(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"https://\S+", line)
        if found:
            return found[0]
    raise AssertionError(f"mooring up ended before it was up:\n{log.read_text(encoding='utf-8')}")
