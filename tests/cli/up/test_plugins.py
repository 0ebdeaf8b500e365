"""Plugins of `mooring up`: from a file, from an importable class, from an installed package; in either process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cluster.running import Up, command, running
from tests.waiting import LIMIT_S, wait_until

PODS = "/api/v1/namespaces/default/pods"
PLUGIN = """
from mooring.scheduler.framework.node_plugins import FilterPlugin
from mooring.scheduler.framework.status import Status


class OnlyLast(FilterPlugin):
    name = "OnlyLast"

    def filter(self, pod, node_info):
        return None if node_info.node.metadata.name == "node-2" else Status.unschedulable("not the last node")
"""
ENABLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: OnlyLast}]}}}]
"""


def placed(up: Up) -> str:
    spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Exists"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    assert up.ask("POST", PODS, body).code == 201
    return str(wait_until(lambda: up.ask("GET", f"{PODS}/web").document()["spec"].get("nodeName"), why=up.log))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of one plugin, on the path of modules."""
    (tmp_path / "harbour_rules.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("source", ["{folder}/harbour_rules.py", "harbour_rules:OnlyLast"])
def test_a_plugin_decides(folder: Path, source: str, processes: str) -> None:
    options = ("--ephemeral", "--nodes", "3", "--processes", processes, "--plugin", source.format(folder=folder))
    with running(folder, *options) as up:
        assert placed(up) == "node-2"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_plugin_of_an_installed_package_is_known(folder: Path, processes: str) -> None:
    package = folder / "harbour_rules-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: harbour-rules\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[mooring.plugins]\nlast = harbour_rules:OnlyLast\n", encoding="utf-8")
    (folder / "config.yaml").write_text(ENABLED, encoding="utf-8")
    options = ("--ephemeral", "--nodes", "3", "--processes", processes, "--config", str(folder / "config.yaml"))
    with running(folder, *options) as up:
        assert placed(up) == "node-2"


@pytest.mark.parametrize(
    ("files", "options", "said"),
    [
        pytest.param(
            {"c.yaml": ENABLED},
            ("--config", "{folder}/c.yaml"),
            "{folder}/c.yaml:4: creating profile for scheduler name default-scheduler: "
            'PreFilterPlugin "OnlyLast" does not exist',
            id="a plugin that does not exist",
        ),
        pytest.param(
            {"c.yaml": "kind: [\n"},
            ("--config", "{folder}/c.yaml"),
            "{folder}/c.yaml:2: cannot be read as YAML or JSON",
            id="a configuration that is no YAML",
        ),
        pytest.param(
            {"rule.py": "class Rule:\n  pass\n"},
            ("--plugin", "{folder}/rule.py"),
            "{folder}/rule.py: found no plugin class",
            id="a file without a plugin",
        ),
        pytest.param({}, ("--plugin", "nowhere:Rule"), "nowhere:Rule: nowhere cannot be imported", id="no module"),
        pytest.param({}, ("--controllers", "nosuch"), "there is no controller 'nosuch'", id="a controller"),
        pytest.param({"s.yaml": "a: 1\n"}, ("--stages", "{folder}/s.yaml"), "{folder}/s.yaml", id="stages"),
        pytest.param({}, ("-f", "{folder}/nowhere.yaml"), "{folder}/nowhere.yaml", id="a manifest"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_printed_or_written(
    tmp_path: Path, files: Mapping[str, str], options: tuple[str, ...], said: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    kubeconfig, data = tmp_path / "kubeconfig", tmp_path / "data"
    words = command("--port", "0", "--data-dir", str(data), "--kubeconfig", str(kubeconfig))
    ended = subprocess.run(
        [*words, *(option.format(folder=tmp_path) for option in options)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said.format(folder=tmp_path) in ended.stderr
    assert not kubeconfig.exists()
    assert not data.exists()


def test_a_plugin_file_is_no_part_of_an_ordinary_start() -> None:
    program = (
        "import sys\n"
        "from mooring.cli.up.settings import _scheduler_configuration\n"
        "assert _scheduler_configuration(None, ()) is None\n"
        "print('mooring.scheduler' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
