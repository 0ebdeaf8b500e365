"""`mooring parity` with a fake kube-scheduler: it sees what is the same, and each way to differ.

What the real one decides is seen by running the command with its binary. These tests are about the harness.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mooring.cli.main import main
from mooring.cli.parity.compare import BALANCED, MESSAGE, NODE, Difference, explained
from mooring.cli.parity.generate import FEATURES, PENDING, random_cluster
from mooring.cli.parity.kube_scheduler import BinaryVersion
from mooring.kit.entropy import Entropy
from tests.golden.recordings import differences, recorded
from tools import verdicts

ROOT = Path(__file__).parents[3]
Binary = Callable[[str], str]


@pytest.fixture
def binary(tmp_path: Path) -> Binary:
    """The path of a fake kube-scheduler that gets something wrong."""

    def make(mistake: str) -> str:
        path = tmp_path / f"fake-{mistake}"
        path.write_text(
            f"#!{sys.executable}\nimport runpy, sys\n"
            f"sys.path[:0] = [{str(ROOT / 'src')!r}, {str(ROOT)!r}]\n"
            f"sys.argv[1:1] = [{mistake!r}]\n"
            "runpy.run_module('tests.cli.parity.fake_kube_scheduler', run_name='__main__')\n"
        )
        path.chmod(0o755)
        return str(path)

    return make


def node(name: str) -> dict[str, object]:
    capacity = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    status = {"allocatable": capacity, "capacity": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, cpu: str, *, on: str = "", priority: str = "") -> dict[str, object]:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, object] = {"containers": [container]}
    if on:
        spec["nodeName"] = on
    if priority:
        spec["priorityClassName"] = priority
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """Two nodes: a pod that fits, one that fits nowhere, and one that preempts."""
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
    items = [
        high,
        node("n1"),
        node("n2"),
        pod("old-1", "1500m", on="n1"),
        pod("old-2", "1500m", on="n2"),
        pod("small", "100m"),
        pod("huge", "64"),
        pod("important", "1900m", priority="high"),
    ]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["parity", *arguments])


def test_no_difference(binary: Binary, dump: str) -> None:
    done = call("--kube-scheduler", binary("nothing"), "-f", dump)
    assert done.exit_code == 0, done.output
    assert "kube-scheduler v1.36.4, 1 cluster, 3 pods" in done.output
    assert "no difference" in done.output


@pytest.mark.parametrize(
    ("mistake", "part"),
    [
        pytest.param("score", "ImageLocality", id="another score of a plugin"),
        pytest.param("message", "message", id="another message"),
        pytest.param("victims", "victims", id="fewer victims"),
    ],
)
def test_a_difference_is_found(
    binary: Binary, dump: str, mistake: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mistake == "victims":  # the one that is missing never comes
        monkeypatch.setattr("mooring.cli.parity.run.VICTIMS_S_MAX", 0.0)
    done = call("--kube-scheduler", binary(mistake), "-f", dump, "-o", "json")
    assert done.exit_code == 1, done.output
    found = json.loads(done.stdout)["differences"]
    assert {difference["part"] for difference in found} == {part}


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        pytest.param("format", "its log has a format that is unknown here", id="no scores in the log"),
        pytest.param("crash", "kube-scheduler ended with code 3", id="the process ends"),
    ],
)
def test_a_binary_that_does_not_work(binary: Binary, dump: str, mistake: str, text: str) -> None:
    done = call("--kube-scheduler", binary(mistake), "-f", dump)
    assert done.exit_code == 2, done.output
    assert text in done.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param([], "--kube-scheduler BIN", id="without a binary"),
        pytest.param(["--kube-scheduler", "/nowhere/kube-scheduler"], "cannot run /nowhere", id="no such binary"),
        pytest.param(["--kube-scheduler", "/bin/true"], "wants a kube-scheduler binary", id="another binary"),
        pytest.param(["--kube-scheduler", "x", "-f", "y", "--random", "1"], "give one of them", id="two clusters"),
    ],
)
def test_bad_input(arguments: list[str], text: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert text in done.output


def replayed(folder: Path) -> list[str]:
    """What differs between the recording of a binary and our decisions."""
    return [
        difference
        for scenario, verdict in recorded("random", folder=folder)
        for difference in differences(verdict, verdicts.verdict(scenario), scenario)
    ]


def test_generated_clusters_are_compared_and_recorded(binary: Binary, tmp_path: Path) -> None:
    record = ("--record", str(tmp_path / "random"))
    done = call("--kube-scheduler", binary("nothing"), "--random", "1", "--seed", "7", "-o", "json", *record)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["pods"] == PENDING
    written = list(recorded("random", folder=tmp_path))
    assert len(written) == PENDING
    assert {(scenario["seed"], verdict["version"]) for scenario, verdict in written} == {(7, "v1.36.4")}
    assert replayed(tmp_path) == []


@pytest.mark.parametrize(("mistake", "field"), [("score", "scores of n"), ("message", "message: want")])
def test_a_replay_finds_what_the_binary_decided_otherwise(
    binary: Binary, dump: str, tmp_path: Path, mistake: str, field: str
) -> None:
    done = call("--kube-scheduler", binary(mistake), "-f", dump, "--record", str(tmp_path / "random"))
    assert done.exit_code == 1, done.output
    found = replayed(tmp_path)
    assert found
    assert all(field in difference for difference in found), found


def test_a_recording_that_cannot_be_written(binary: Binary, dump: str, tmp_path: Path) -> None:
    done = call("--kube-scheduler", binary("nothing"), "-f", dump, "--record", str(tmp_path / "none" / "random"))
    assert done.exit_code == 2
    assert "cannot write" in done.output


def test_the_same_seed_gives_the_same_cluster() -> None:
    first, second = (random_cluster(Entropy(3, "parity")) for _ in range(2))
    assert first == second
    assert first != random_cluster(Entropy(4, "parity"))


def test_every_feature_occurs_in_a_few_clusters() -> None:
    text = json.dumps([random_cluster(Entropy(seed)) for seed in range(5)])
    for word in (
        *("hostPort", "nodeSelector", "nodeAffinity", "tolerations", "podAffinity", "podAntiAffinity", "claimName"),
        *("topologySpreadConstraints", "resourceClaimName", "ReadWriteOncePod", "unschedulable", "PreferNoSchedule"),
    ):
        assert word in text
    assert len(FEATURES) == 11


@pytest.mark.parametrize(
    ("minor", "part", "theirs", "ours", "is_explained"),
    [
        pytest.param(35, BALANCED, "81", "66", True, id="balance before 1.36"),
        pytest.param(36, BALANCED, "81", "66", False, id="balance in the same version"),
        pytest.param(33, "NodeAffinity", "81", "66", False, id="another plugin"),
        pytest.param(
            34,
            MESSAGE,
            "2 node(s) had untolerated taint {a: b}.",
            "2 node(s) had untolerated taint(s).",
            True,
            id="taint",
        ),
        pytest.param(
            34,
            MESSAGE,
            "2 node(s) had untolerated taint {a: b}.",
            "3 node(s) had untolerated taint(s).",
            False,
            id="count",
        ),
        pytest.param(
            33, MESSAGE, "no. preemption: x", "no. no new claims to deallocate, preemption: x", True, id="devices"
        ),
        pytest.param(
            33,
            MESSAGE,
            "4 Insufficient cpu. preemption: 3 Insufficient cpu, 1 Preemption is not helpful for scheduling.",
            "4 Insufficient cpu. preemption: 2 Insufficient cpu, 2 Preemption is not helpful for scheduling.",
            True,
            id="preemption on nodes that are too small",
        ),
        pytest.param(
            33,
            MESSAGE,
            "4 Insufficient cpu. preemption: 3 Insufficient cpu.",
            "5 Insufficient cpu. preemption: 3 Insufficient cpu.",
            False,
            id="another number of nodes that are too small",
        ),
    ],
)
def test_what_a_version_explains(minor: int, part: str, theirs: str, ours: str, is_explained: bool) -> None:
    difference = Difference(pod="p", part=part, kube_scheduler=theirs, mooring=ours)
    (found,) = explained([difference], BinaryVersion(f"v1.{minor}.0", 1, minor))
    assert bool(found.explained) is is_explained


def test_another_node_follows_from_other_scores() -> None:
    scores = Difference(pod="p", part=BALANCED, kube_scheduler="1", mooring="2")
    chosen = Difference(pod="p", part=NODE, kube_scheduler="n1", mooring="one of n2")
    version = BinaryVersion("v1.33.0", 1, 33)
    assert all(each.explained for each in explained([chosen, scores], version))
    assert not explained([chosen], version)[0].explained
