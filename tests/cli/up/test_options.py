"""Options of `mooring up`: nodes, plugins, tokens and logs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mooring.cli.errors import InputError
from mooring.cli.up import command as up_command
from mooring.cli.up.command import _token, up
from tests.cluster.running import Up, command, running
from tests.waiting import LIMIT_S, wait_until

EXAMPLE = str(Path(__file__).parents[3] / "examples/nodes/node-templates.yaml")
ZONE = "topology.kubernetes.io/zone"


def nodes(up: Up) -> dict[str, Any]:
    return {node["metadata"]["name"]: node for node in up.ask("GET", "/api/v1/nodes").document()["items"]}


def test_nodes_have_the_requested_shape(tmp_path: Path) -> None:
    options = ("--nodes", "3", "--cpu", "4", "--memory", "8Gi", "--pods", "20", "--zones", "x,y")
    with running(tmp_path, "--ephemeral", *options, "--without", "scheduler,controllers") as up:
        found = nodes(up)
        assert [node["metadata"]["labels"][ZONE] for node in found.values()] == ["x", "y", "x"]
        amounts = found["node-0"]["status"]["allocatable"]
        assert (amounts["cpu"], amounts["memory"], amounts["pods"]) == ("4", "8Gi", "20")


def test_nodes_of_templates_with_taints_resources_and_devices(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1", "--node-templates", EXAMPLE) as up:
        found = nodes(up)
        assert list(found) == ["dra-0", "general-0", "general-1", "general-2", "gpu-0", "gpu-1", "node-0"]
        gpu = found["gpu-1"]
        assert gpu["spec"]["taints"] == [{"key": "gpu", "value": "present", "effect": "NoSchedule"}]
        assert gpu["status"]["allocatable"]["example.com/gpu"] == "8"
        assert (gpu["metadata"]["labels"]["accelerator"], gpu["metadata"]["labels"][ZONE]) == ("a100", "zone-a")
        assert found["node-0"]["status"]["allocatable"]["cpu"] == "32"

        def slices() -> list[dict[str, Any]]:
            return list(up.ask("GET", "/apis/resource.k8s.io/v1/resourceslices").document()["items"])

        (published,) = wait_until(slices, why=up.log)
        assert published["spec"]["nodeName"] == "dra-0"
        assert [device["name"] for device in published["spec"]["devices"]] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
        assert published["spec"]["devices"][0]["capacity"] == {"memory": {"value": "80Gi"}}
        assert up.ask("DELETE", "/api/v1/nodes/dra-0").code == 200
        wait_until(lambda: slices() == [], why=up.log)


def test_nodes_of_an_earlier_start_are_reported_and_deleted_on_demand(tmp_path: Path) -> None:
    data = ("--data-dir", str(tmp_path / "data"), "--without", "scheduler,controllers")
    with running(tmp_path, *data, "--nodes", "5") as up:
        assert len(nodes(up)) == 5
        assert not [line for line in up.lines("Ctrl-C") if "earlier start" in line]
    with running(tmp_path, *data, "--nodes", "2") as up:
        said = up.lines("Ctrl-C")
        at = said.index("  nodes        3 of an earlier start have no kubelet:")
        assert said[at + 1 : at + 3] == [
            "               node-2, node-3, node-4",
            "               (--prune-nodes deletes them)",
        ]
        assert all(len(line) <= 80 or str(tmp_path) in line for line in said)
        assert len(nodes(up)) == 5
    with running(tmp_path, *data, "--nodes", "2", "--prune-nodes", "--cpu", "8") as up:
        assert "  deleted      3 nodes of an earlier start:" in up.lines("Ctrl-C")
        assert list(nodes(up)) == ["node-0", "node-1"]
        # As by a kubelet that starts on a machine that has changed.
        wait_until(lambda: {node["status"]["capacity"]["cpu"] for node in nodes(up).values()} == {"8"})


def test_nodes_that_others_added_are_no_concern(tmp_path: Path) -> None:
    data = ("--data-dir", str(tmp_path / "data"), "--without", "scheduler,controllers")
    with running(tmp_path, *data, "--nodes", "1") as up:
        mine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "mine"}}
        assert up.ask("POST", "/api/v1/nodes", mine).code == 201
    with running(tmp_path, *data, "--nodes", "1", "--prune-nodes") as up:
        assert not [line for line in up.lines("Ctrl-C") if "earlier start" in line]
        assert list(nodes(up)) == ["mine", "node-0"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("--cpu", "many"), "cpu of a node is 'many'; wanted an amount", id="an amount"),
        pytest.param(("--node-templates", "{file}"), "{file}:2: nodeTemplates[0].nam: 'nam' is not", id="a template"),
        pytest.param(("--node-templates", "{empty}"), "{empty}: is empty", id="an empty file"),
        pytest.param(
            ("--runtime", "process", "--memory", "1Gi"),
            "--memory and --runtime process contradict each other",
            id="this machine has its own shape",
        ),
    ],
)
@pytest.mark.parametrize("name", ["up", "nodes"])
def test_errors_are_reported_before_the_start(tmp_path: Path, name: str, options: tuple[str, ...], said: str) -> None:
    places = {"file": str(tmp_path / "t.yaml"), "empty": str(tmp_path / "e.yaml")}
    (tmp_path / "t.yaml").write_text("nodeTemplates:\n- nam: a\n", encoding="utf-8")
    (tmp_path / "e.yaml").write_text("", encoding="utf-8")
    words = command("--ephemeral", "--port", "0") if name == "up" else [*command()[:3], "nodes"]
    ended = subprocess.run(
        [*words, *(option.format(**places) for option in options)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said.format(**places) in ended.stderr


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
def test_errors_are_reported_before_anything_is_printed_or_written(
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


def test_a_file_holds_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    assert _token("", file) == "secret"
    assert _token("given", None) == "given"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no token; wanted one line without spaces"),
        (b"two words", "holds no token; wanted one line without spaces"),
        (b"two\nlines", "holds no token; wanted one line without spaces"),
        (b"\xff", "cannot be read as the token of the administrator"),
    ],
)
def test_a_bad_file(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        _token("", file)


def test_two_tokens_contradict_each_other(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    with pytest.raises(InputError, match="contradict each other"):
        _token("given", file)


def test_the_environment_has_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def note(token: str, file: Path | None) -> str:
        seen.append(token)
        raise InputError([])

    monkeypatch.setattr(up_command, "_token", note)
    CliRunner().invoke(up, ["--ephemeral"], env={"MOORING_TOKEN": "secret"})
    assert seen == ["secret"]


def create(up: Up, name: str, cpu: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    assert up.ask("POST", PODS, body).code == 201


@pytest.mark.parametrize("processes", ["1", "2"])
def test_each_decision_rejection_and_binding_is_one_line(tmp_path: Path, processes: str) -> None:
    options = ("--ephemeral", "--nodes", "2", "--processes", processes, "-v", "--logging-format", "json")
    with running(tmp_path, *options) as up:
        # Pods may come before the nodes are ready: then they are rejected first, because of a taint.
        create(up, "small", "1")
        create(up, "large", "99")

        def lines() -> list[dict[str, Any]]:
            complete = up.log().rpartition("\n")[0]
            return [json.loads(line) for line in complete.splitlines() if line.startswith("{")]

        def about(pod: str, start: str) -> list[dict[str, Any]]:
            return [line for line in lines() if line.get("pod") == f"default/{pod}" and start in line["msg"]]

        (bound,) = wait_until(lambda: about("small", "is bound to"), why=up.log)
        (decided,) = about("small", "gets")
        assert decided["node"] == bound["node"]
        assert (decided["feasibleNodes"] in (1, 2), decided["v"]) == (True, 2)
        assert re.fullmatch(r"reporting/reports\.py:\d+", decided["caller"])
        rejected = wait_until(
            lambda: [line for line in about("large", "is unschedulable") if line["plugin"] == "NodeResourcesFit"],
            why=up.log,
        )[0]
        assert rejected["reason"].startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_text_has_the_header_of_klog(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "1", "-v") as up:
        create(up, "small", "1")
        head = r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ reports\.py:\d+\]"
        wait_until(lambda: re.search(rf"{head} pod default/small is bound to node-0, attempts: \d\n", up.log()))
