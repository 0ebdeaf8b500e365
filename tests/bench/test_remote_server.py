"""The API server of the remote benchmark, and the benchmark itself with few pods."""

from __future__ import annotations

import msgspec
import pytest

from bench.remote import measure
from bench.remote_server import Cluster
from mooring.api.decode import decode_as
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod


def cluster_with(pods: int) -> tuple[Cluster, list[bytes]]:
    cluster = Cluster("plain", nodes=3, placed=4, pods=pods)
    lines: list[bytes] = []
    cluster.send_line = lines.append
    cluster.create(pods)
    return cluster, lines


def binding(pod: Pod, node: str, uid: str = "") -> bytes:
    return msgspec.json.encode({"metadata": {"uid": uid or pod.metadata.uid}, "target": {"name": node}})


def event_about(pod: Pod) -> bytes:
    return msgspec.json.encode({"reason": "Scheduled", "regarding": {"namespace": "shop", "name": pod.metadata.name}})


def view_in(line: bytes) -> Pod:
    return decode_as(Pod, line.partition(b'"object":')[2].removesuffix(b"}\n"))


def test_what_it_holds_at_first() -> None:
    cluster, _ = cluster_with(0)
    assert [decode_as(Node, raw).metadata.name for raw in cluster.items("nodes")] == ["node-0", "node-1", "node-2"]
    placed = [decode_as(Pod, raw) for raw in cluster.items("pods")]
    assert all(pod.spec.node_name for pod in placed)
    assert len({pod.metadata.resource_version for pod in placed}) == 4
    assert cluster.items("services") == []


def test_a_pod_appears_and_is_bound() -> None:
    cluster, lines = cluster_with(1)
    added = view_in(lines[0])
    assert lines[0].startswith(b'{"type":"ADDED"')
    assert added.spec.node_name == ""
    assert cluster.bind(added.key, binding(added, "node-1")) == ""
    bound = view_in(lines[1])
    assert lines[1].startswith(b'{"type":"MODIFIED"')
    assert (bound.spec.node_name, bound.metadata.uid) == ("node-1", added.metadata.uid)
    assert int(bound.metadata.resource_version) > int(added.metadata.resource_version)
    cluster.note(event_about(added))
    result = cluster.result()
    assert (result["bound"], result["events"], result["errors"]) == (1, 1, [])


@pytest.mark.parametrize(
    ("node", "uid", "is_bound_before"),
    [
        pytest.param("node-1", "", True, id="a second time"),
        pytest.param("node-9", "", False, id="to a node that is not there"),
        pytest.param("node-1", "another", False, id="as another pod"),
    ],
)
def test_a_wrong_binding_is_a_fault(node: str, uid: str, is_bound_before: bool) -> None:
    cluster, lines = cluster_with(1)
    pod = view_in(lines[0])
    if is_bound_before:
        cluster.bind(pod.key, binding(pod, "node-1"))
    assert "cannot be bound" in cluster.bind(pod.key, binding(pod, node, uid))
    assert cluster.errors


def test_a_pod_without_its_event_is_a_fault() -> None:
    cluster, lines = cluster_with(2)
    pods = [view_in(line) for line in lines]
    for pod in pods:
        cluster.bind(pod.key, binding(pod, "node-0"))
    for _ in pods:
        cluster.note(
            msgspec.json.encode(
                {"reason": "Scheduled", "regarding": {"namespace": "shop", "name": pods[0].metadata.name}}
            )
        )
    assert cluster.result()["errors"] == [f"{pods[0].key} has 2 events", f"{pods[1].key} has 0 events"]


# --- The scheduler over HTTP and TLS, measured in small: it works, and the figures are figures -----------------------


def test_a_small_run() -> None:
    figures = list(measure("plain", nodes=20, placed=30, pods=40))
    assert [figure.unit for figure in figures] == ["s", "MB", "/s", "/s", "ms", "MB"]
    assert all(figure.value > 0 for figure in figures)
