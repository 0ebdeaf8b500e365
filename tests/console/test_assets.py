"""The files of the console: their weight, their sources, and what they may contain."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mooring.console import STATIC, assets

ROOT = Path(__file__).parents[2]
PAGE_BYTES_MAX = 300 * 1024
OWN = sorted(path for path in STATIC.iterdir() if path.suffix in (".html", ".css", ".js"))


def test_the_whole_page_is_small() -> None:
    assert sum(len(asset.body) for asset in assets().values()) <= PAGE_BYTES_MAX


def test_vendored_modules_are_those_of_the_manifest() -> None:
    checked = subprocess.run([sys.executable, "tools/vendor_console.py", "--check"], cwd=ROOT, capture_output=True)
    assert checked.returncode == 0, checked.stdout.decode()


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_no_file_loads_from_elsewhere_or_writes_html(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)
    assert not re.search(r"<script>|<style|\son[a-z]+=\"", text), "the policy forbids inline scripts and styles"


@pytest.mark.parametrize("path", sorted(STATIC.rglob("*.js")), ids=lambda path: path.name)
def test_imports_are_files(path: Path) -> None:
    for name in re.findall(r"""\b(?:from|import)\s*["']([^"']+)["']""", path.read_text(encoding="utf-8")):
        assert (path.parent / name).is_file(), name
