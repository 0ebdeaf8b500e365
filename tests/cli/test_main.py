"""The command `mooring`: help, version, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from mooring import __version__
from mooring.cli.flags import SectionedCommand
from mooring.cli.main import SECTIONS, main
from tests.cli.screens import ROOT, run
from tests.waiting import LIMIT_S

MOORING = [sys.executable, "-c", "from mooring.cli.main import main; main(prog_name='mooring')"]
HARBOUR = str(ROOT / "examples/clusters/harbour.yaml")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["--version"], 0, f"mooring {__version__}\n", id="the version"),
        pytest.param(["version"], 0, f"mooring {__version__} (", id="the version, with the commit"),
        pytest.param(["version", "-o", "json"], 0, '"commit": "', id="the version for programs"),
        pytest.param(["--help"], 0, "Say where pending pods go, and why.", id="help names the commands"),
        pytest.param(["-h"], 0, "Usage: mooring", id="the short help flag"),
        pytest.param(["explain", "--help"], 0, "--exit-code", id="help of a command"),
        pytest.param(["sail"], 2, "No such command 'sail'", id="an unknown command"),
        pytest.param(["--fast"], 2, "No such option", id="an unknown flag"),
        pytest.param(["explain", "-f", HARBOUR, "--fast"], 2, "No such option", id="an unknown flag of a command"),
        pytest.param(["explain", "--kubeconfig", "/none"], 2, "/none: there is no such file", id="no kubeconfig"),
        pytest.param(["explain", "-f", HARBOUR, "--now", "noon"], 2, "'noon' is not a timestamp", id="no time"),
        pytest.param(["explain", "-f", HARBOUR, "-o", "xml"], 2, "'xml' is not one of", id="an unknown format"),
        pytest.param(["explain", "-f", HARBOUR, "--seed", "x"], 2, "not a valid integer", id="a seed that is none"),
        pytest.param(["explain", "-f", HARBOUR, "--nodes", "0"], 2, "nor the word all", id="no nodes at all"),
        pytest.param(["explain", "-f", HARBOUR, "--nodes", "few"], 2, "nor the word all", id="a few nodes"),
        pytest.param(["explain", "-f", HARBOUR, "tug-2", "b"], 2, 'found no pod "b"', id="two pods, one unknown"),
    ],
)
def test_the_command_line(arguments: list[str], code: int, said: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, said in result.output) == (code, True), result.output


COMMANDS = sorted(main.commands)


def test_the_help_shows_every_command_in_one_section() -> None:
    shown = [command.name for commands in SECTIONS.values() for command in commands]
    assert sorted(shown, key=str) == COMMANDS
    text = run("--help").output
    assert [name for name in COMMANDS if f"\n  {name} " not in text] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal_and_is_grouped(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(command, "--help").output.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if "simulated node" in line] == [], "they are called hollow nodes"
    assert isinstance(main, click.Group)
    found = main.commands[command]
    options = [param for param in found.params if isinstance(param, click.Option) and not param.hidden]
    assert [option.name for option in options if not option.help] == [], "every option has a help"
    if isinstance(found, SectionedCommand):
        at = lines.index("Other options:")
        assert lines[at + 1].strip().startswith("-h, --help"), "every option belongs to a section"
        assert {name for names in found.sections.values() for name in names} <= {param.name for param in found.params}


def test_help_imports_neither_numpy_nor_rich_nor_yaml() -> None:
    program = (
        "import sys\n"
        "from mooring.cli.main import main\n"
        "try:\n    main(['explain', '--help'])\n"
        "except SystemExit:\n    pass\n"
        "print(*(name for name in ('numpy', 'rich', 'yaml', 'msgspec', 'asyncio') if name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == ""


def test_explaining_without_a_terminal_draws_nothing() -> None:
    program = (
        "import sys\n"
        "from mooring.cli.main import main\n"
        f"main(['explain', '-f', {HARBOUR!r}], standalone_mode=False)\n"
        "print('rich' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr == "False\n"
    assert "\x1b" not in done.stdout


def test_a_reader_that_goes_away_ends_it_without_a_word(tmp_path: Path) -> None:
    waiting = "".join(
        f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p{n}"}}, "spec": {{"containers": []}}}}\n'
        for n in range(400)
    )
    (tmp_path / "pods.json").write_text(waiting)
    command = [*MOORING, "explain", "-f", HARBOUR, "-f", str(tmp_path / "pods.json"), "-o", "json"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered)
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.read(10)
    writer.stdout.close()
    complaints = writer.stderr.read()
    writer.stderr.close()
    assert (writer.wait(timeout=LIMIT_S), complaints) == (141, b"")


def test_an_interrupt_ends_it_with_one_line(tmp_path: Path) -> None:
    slow = tmp_path / "slow.yaml"
    os.mkfifo(slow)
    command = [*MOORING, "explain", "-f", str(slow)]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with slow.open("w"):  # waits until the command has it open, and so has begun to work
        reader.send_signal(signal.SIGINT)
        output, complaints = reader.communicate(timeout=LIMIT_S)
    assert (reader.returncode, output, complaints) == (130, "", "mooring: interrupted\n")


def test_json_goes_to_standard_output_and_notes_to_standard_error() -> None:
    result = run("explain", "-f", str(ROOT / "tests/cli/clusters/skipped.yaml"), "-o", "json")
    assert json.loads(result.stdout)["pods"] == []
    assert result.stderr.startswith("mooring: note: skipped 3 objects")
