"""Nodes of `mooring up`: shapes, templates, and those of an earlier start."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.running import Up, command, running
from tests.waiting import LIMIT_S, wait_until

EXAMPLE = str(Path(__file__).parents[3] / "examples/nodes/node-templates.yaml")
ZONE = "topology.kubernetes.io/zone"


def nodes(up: Up) -> dict[str, Any]:
    return {node["metadata"]["name"]: node for node in up.ask("GET", "/api/v1/nodes").document()["items"]}


def test_nodes_have_the_shape_that_was_asked_for(tmp_path: Path) -> None:
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
def test_what_is_wrong_is_told_before_the_start(tmp_path: Path, name: str, options: tuple[str, ...], said: str) -> None:
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
