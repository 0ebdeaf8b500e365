"""The log of `mooring up`: what the scheduler decides, as text and as JSON, from either process."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.running import Up, running
from tests.waiting import wait_until

PODS = "/api/v1/namespaces/default/pods"


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
