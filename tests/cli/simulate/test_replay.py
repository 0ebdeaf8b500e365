"""`mooring simulate --replay` from the outside, and `--record`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run as run_virtual
from mooring.scheduler.catalogue import configuration_with
from mooring.scheduler.config.load import encode_configuration
from mooring.scheduler.reporting.recording import Recording
from tests.builders import node, pod
from tests.cli.screens import ROOT, run
from tests.scheduler.world import open_world

PACKING = "examples/configurations/packing.yaml"
PLUGIN = """
from mooring.scheduler.framework.node_plugins import ScorePlugin


class Last(ScorePlugin):
    name = "Last"

    def score(self, pod, node_info):
        return 10 * int(node_info.name[1:])
"""


@pytest.fixture(autouse=True)
def _in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def record(path: Path, *plugins: str) -> None:
    clock = VirtualClock()
    configuration, registry = configuration_with(None, plugins)

    async def main() -> None:
        async with open_world(clock, Entropy(5)) as world:
            world.start_scheduler(
                encode_configuration(configuration), registry=registry, recording=Recording(path, clock)
            )
            await world.create(*(node(f"n{n}", cpu=4 + n) for n in range(5)))
            await world.create(*(pod(f"web-{n}", cpu=1) for n in range(8)), pod("huge", cpu=99))
            await world.settle(5)

    run_virtual(main(), clock)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "run.recording"
    record(path)
    return path


def test_an_exact_replay(recording: Path) -> None:
    result = run("simulate", "--replay", str(recording))
    assert (result.exit_code, result.stderr) == (0, "")
    attempts, verdict = result.stdout.splitlines()
    assert attempts.startswith("9 attempts in ")
    assert verdict == "Every decision is the recorded one."
    document = json.loads(run("simulate", "--replay", str(recording), "-o", "json").stdout)
    assert (document["exact"], document["attempts"], document["differing"]) == (True, 9, 0)


def test_the_first_difference_is_shown_in_full(recording: Path, tmp_path: Path) -> None:
    lines = gzip.decompress(recording.read_bytes()).decode().splitlines()
    changed = tmp_path / "changed.recording"
    header = json.loads(lines[0])
    weights = [{"name": "NodeResourcesFit", "weight": 90}, {"name": "ImageLocality", "weight": 2}]
    header["configuration"]["profiles"][0]["plugins"]["multiPoint"] = {"enabled": weights}
    changed.write_bytes(gzip.compress("\n".join((json.dumps(header), *lines[1:], "")).encode()))
    result = run("simulate", "--replay", str(changed))
    assert result.exit_code == 1
    shown = result.stdout.splitlines()
    assert shown[1] == "The first difference:"
    assert shown[2].startswith("  pod default/web-")
    assert shown[3].split()[0] == "recorded"
    assert shown[4].split()[0] == "replayed"
    assert any(line.split()[:1] == ["NodeResourcesFit"] for line in shown)
    assert max(map(len, shown)) <= 80


def test_a_recorded_configuration_that_cannot_be_used(recording: Path, tmp_path: Path) -> None:
    lines = gzip.decompress(recording.read_bytes()).decode().splitlines()
    header = json.loads(lines[0])
    header["configuration"]["profiles"][0]["plugins"]["preFilter"] = {"enabled": [{"name": "Nobody"}]}
    changed = tmp_path / "changed.recording"
    changed.write_bytes(gzip.compress("\n".join((json.dumps(header), *lines[1:], "")).encode()))
    result = run("simulate", "--replay", str(changed))
    assert result.exit_code == 2
    assert "changed.recording:1: the configuration cannot be used: " in result.stderr


def test_another_configuration(recording: Path) -> None:
    result = run("simulate", "--replay", str(recording), "--config", PACKING)
    assert result.exit_code == 0, result.output
    rows = dict(line.strip().rsplit("  ", 1) for line in result.stdout.splitlines()[1:5])
    numbers = {name.strip(): int(count) for name, count in rows.items()}
    assert numbers["another node"] > 0
    assert sum(numbers.values()) == 9
    policy = run("simulate", "examples/simulations/weekend.yaml", "--policy", "packing", "--replay", str(recording))
    assert policy.stdout == result.stdout


def test_the_recorded_plugins_are_named_again(tmp_path: Path) -> None:
    plugin, path = tmp_path / "last.py", tmp_path / "run.recording"
    plugin.write_text(PLUGIN)
    record(path, str(plugin))
    assert run("simulate", "--replay", str(path), "--plugin", str(plugin)).exit_code == 0
    plugin.write_text(PLUGIN.replace("10 * int(node_info.name[1:])", "100 - 10 * int(node_info.name[1:])"))
    changed = run("simulate", "--replay", str(path), "--plugin", str(plugin))
    assert changed.exit_code == 1
    assert "note: the plugin Last has changed since the recording" in changed.stderr


@pytest.mark.parametrize("arguments", [(), ("--config", PACKING)])
def test_a_recording_runs_no_code(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    plugin, path, proof = tmp_path / "last.py", tmp_path / "run.recording", tmp_path / "proof"
    plugin.write_text(PLUGIN)
    record(path, str(plugin))
    plugin.write_text(f"open({str(proof)!r}, 'w').close()\n{PLUGIN}")
    result = run("simulate", "--replay", str(path), *arguments)
    assert not proof.exists()
    if not arguments:
        assert result.exit_code == 2
        assert f"the recorded scheduler had the plugin Last; if you trust it: --plugin {plugin}" in result.stderr


def test_a_killed_scheduler_is_noted(recording: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.recording"
    cut.write_bytes(recording.read_bytes()[:-60])
    result = run("simulate", "--replay", str(cut))
    assert result.exit_code == 0
    assert "note: the recording has no end: its scheduler still runs, or was killed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing argument 'SCENARIO'; or use --replay FILE"),
        (("--replay", "README.md"), "README.md: is no recording; wanted a file that mooring scheduler --record has"),
        (("RECORDING",), "run.recording: is compressed, like a recording: mooring simulate --replay reads those"),
        (("--replay", "nowhere"), "nowhere: cannot be read: No such file or directory"),
        (("--replay", "RECORDING", "--seeds", "1", "--output", "x"), "--replay has no use for --seeds, --output"),
        (("--replay", "RECORDING", "--level", "cluster", "--on", "dask://x:1"), "has no use for --level, --on"),
        (("--replay", "RECORDING", "--set", "a=b"), "--set needs the scenario"),
        (
            ("examples/simulations/weekend.yaml", "--replay", "RECORDING", "--plugin", "x.py", "--policy", "default"),
            "--config, --plugin and a scenario contradict each other",
        ),
        (("--replay", "RECORDING", "--policy", "x"), "--policy needs the scenario that has it"),
        (("--replay", "RECORDING", "--config", "README.md"), "README.md"),
        (("examples/simulations/weekend.yaml", "--config", PACKING), "--config and --plugin belong to --replay"),
        (
            ("examples/simulations/weekend.yaml", "--replay", "RECORDING"),
            "one --policy; the scenario has default",
        ),
        (("examples/simulations/weekend.yaml", "--policy", "x"), "weekend.yaml: has no policy x"),
    ],
)
def test_wrong_input(arguments: tuple[str, ...], words: str, recording: Path) -> None:
    result = run("simulate", *(str(recording) if argument == "RECORDING" else argument for argument in arguments))
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--record", "no/such/folder/x"), "cannot write the recording no/such/folder/x: No such file or directory"),
        (("--record", "FOLDER/x", "--record-size-max", "many"), "--record-size-max: 'many' is no size"),
        (
            ("--record", "FOLDER/x", "--config", "FOLDER/extenders.yaml"),
            "has extenders, whose answers are not",
        ),
    ],
)
def test_what_cannot_be_recorded(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    (tmp_path / "extenders.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n"
    )
    given = (argument.replace("FOLDER", str(tmp_path)) for argument in arguments)
    result = run("scheduler", "--master", "http://127.0.0.1:1", "--secure-port", "0", *given)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
