"""README.md and docs/library.md: pictures show what commands print, and commands and examples run as printed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, page
from tools.picture import COLUMNS, PICTURES, Picture

README = page("README.md")


@pytest.mark.parametrize("shown", PICTURES, ids=lambda shown: shown.name)
def test_a_picture_shows_what_its_commands_print(shown: Picture) -> None:
    assert shown.file.read_text(encoding="utf-8") == shown.drawn(), "run tools/picture.py again"
    assert f"docs/images/{shown.file.name}" in README.text


@pytest.mark.parametrize("shown", PICTURES, ids=lambda shown: shown.name)
def test_a_picture_fits_a_terminal(shown: Picture) -> None:
    lines = [line for output in shown.printed() for line in output.splitlines()]
    assert [line for line in lines if len(line) > COLUMNS] == []


def test_the_example_runs() -> None:
    [example] = README.blocks("python")
    exec(compile(example, "README.md", "exec"), {})


def test_the_front_page_is_short() -> None:
    assert len(README.text.splitlines()) <= 190


def shell_commands() -> list[str]:
    """The commands of all `sh` blocks, each on one line."""
    script = "\n".join(README.blocks("sh")).replace("\\\n", "")
    return [re.sub(r"\s+#.*", "", line) for line in script.splitlines() if line.strip()]


@contextmanager
def running(command: str, folder: Path, environment: dict[str, str]) -> Iterator[list[str]]:
    """Run `mooring up`; yields the lines of its banner. Ctrl-C must end it with code 0."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            printed = []
            for line in process.stdout:
                printed.append(line)
                if line.startswith("Ctrl-C ends it"):
                    break
            yield printed
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
    assert process.returncode == 0, f"{command} ended with {process.returncode}"


def test_every_command_runs_as_printed(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "kubeconfig"),
    }
    commands = shell_commands()
    install, explain, up, export, *examples = commands
    assert install == "pip install ."
    assert export == "export KUBECONFIG=$PWD/kubeconfig"
    assert up.startswith("mooring up ")
    has_kubectl = shutil.which("kubectl") is not None
    with running(f"{up} --port 0", tmp_path, environment) as printed:
        assert any("export KUBECONFIG=" in line for line in printed)
        for command in (explain, *examples):
            if command.startswith("mooring up") and "--detach" not in command:
                if has_kubectl or "cluster.json" not in command:
                    with running(command, tmp_path, environment):
                        pass
            elif has_kubectl or not ("kubectl" in command or "cluster.json" in command or "too-large" in command):
                done = subprocess.run(
                    ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{command}: {done.stderr}"


def test_make_up_starts_the_same_cluster() -> None:
    recipe = re.search(r"^up:.*\n\t@\$\(BIN\)/(mooring up .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    make_up = recipe[1].replace("$(VENV)/kubeconfig", "kubeconfig").replace("$(DEMO)", "examples/manifests/demo.yaml")
    assert make_up in shell_commands()


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
