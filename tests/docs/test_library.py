"""The examples of docs/library.md run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.docs.pages import ROOT, page

EXAMPLES = page("docs/library.md").blocks("python")


@pytest.mark.parametrize("example", EXAMPLES, ids=[str(number) for number in range(len(EXAMPLES))])
def test_an_example_runs(example: str) -> None:
    subprocess.run([sys.executable, "-c", example], cwd=ROOT, check=True, timeout=120)


def test_the_package_alone_imports_nothing_else() -> None:
    script = (
        "import sys, mooring\n"
        "assert mooring.__version__\n"
        "found = [name for name in sys.modules if name.startswith(('mooring.', 'numpy', 'msgspec'))]\n"
        "assert found == [], found\n"
        "from mooring import Cluster, Engine, load\n"
        "assert {'Cluster', 'Engine', 'load'} <= set(dir(mooring))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
