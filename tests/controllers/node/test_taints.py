"""Which taints and labels a node must carry."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.node import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from mooring.controllers.node.taints import (
    NOT_READY,
    REACHABLE,
    UNREACHABLE,
    TaintChange,
    labels_to_set,
    no_execute_change,
    no_schedule_change,
    taints_after,
)
from tests.api.builders import taint


def node(conditions: str = "", taints: str = "", *, unschedulable: bool = False, labels: str = "") -> Node:
    """`Ready=False MemoryPressure=True`, `a:NoSchedule`."""
    pairs = [text.split("=") for text in conditions.split()]
    return Node(
        metadata=ObjectMeta(labels=dict(text.split("=") for text in labels.split())),
        spec=NodeSpec(taints=tuple(taint(text) for text in taints.split()), unschedulable=unschedulable),
        status=NodeStatus(conditions=tuple(NodeCondition(type=type, status=status) for type, status in pairs)),
    )


def keys(taints: tuple[Taint, ...]) -> list[str]:
    assert all(taint.effect == "NoSchedule" for taint in taints)
    return [taint.key.removeprefix("node.kubernetes.io/") for taint in taints]


@pytest.mark.parametrize(
    ("seen", "added", "removed"),
    [
        pytest.param(node("Ready=True MemoryPressure=False"), [], [], id="a node that is well carries none"),
        pytest.param(node("Ready=False"), ["not-ready"], [], id="not ready"),
        pytest.param(node("Ready=Unknown"), ["unreachable"], [], id="unreachable"),
        pytest.param(
            node("MemoryPressure=True DiskPressure=True PIDPressure=True NetworkUnavailable=True"),
            ["memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable"],
            [],
            id="pressures, in the order of the conditions",
        ),
        pytest.param(node("Ready=True", unschedulable=True), ["unschedulable"], [], id="cordoned"),
        pytest.param(
            node("Ready=Unknown", "node.kubernetes.io/not-ready:NoSchedule"),
            ["unreachable"],
            ["not-ready"],
            id="one in place of the other",
        ),
        pytest.param(
            node("Ready=True", "node.kubernetes.io/unschedulable:NoSchedule mine:NoSchedule"),
            [],
            ["unschedulable"],
            id="others' taints stay",
        ),
        pytest.param(
            node("Ready=True", "node.kubernetes.io/not-ready:NoExecute"), [], [], id="NoExecute is not its business"
        ),
    ],
)
def test_no_schedule_taints_mirror_the_state(seen: Node, added: list[str], removed: list[str]) -> None:
    change = no_schedule_change(seen)
    assert (keys(change.added), keys(change.removed)) == (added, removed)


@pytest.mark.parametrize(
    ("status", "change"),
    [
        pytest.param("True", None, id="ready"),
        pytest.param("False", TaintChange((NOT_READY,), (UNREACHABLE,)), id="not ready"),
        pytest.param("Unknown", TaintChange((UNREACHABLE,), (NOT_READY,)), id="unreachable"),
    ],
)
def test_no_execute_taints_exclude_each_other(status: str, change: TaintChange | None) -> None:
    assert no_execute_change(status) == change


MINE: Document = {"key": "mine", "effect": "NoExecute"}
OLD: Document = {"key": NOT_READY.key, "effect": "NoExecute", "timeAdded": "then"}
NEW: Document = {"key": UNREACHABLE.key, "effect": "NoExecute", "timeAdded": "now"}


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        pytest.param([MINE], TaintChange((UNREACHABLE,), (NOT_READY,)), [MINE, NEW], id="added at the end"),
        pytest.param([OLD, MINE], TaintChange((UNREACHABLE,), (NOT_READY,)), [MINE, NEW], id="swapped"),
        pytest.param(
            [{**NEW, "timeAdded": "then"}, MINE], TaintChange((UNREACHABLE,)), [NEW, MINE], id="added again: a new time"
        ),
        pytest.param([NEW], TaintChange((UNREACHABLE,)), None, id="the very same is no change"),
        pytest.param([OLD, NEW, MINE], REACHABLE, [MINE], id="both taken away"),
        pytest.param([MINE], REACHABLE, None, id="nothing to take away"),
    ],
)
def test_the_list_after_a_change(before: list[Document], change: TaintChange, after: list[Document] | None) -> None:
    assert taints_after(before, change, "now") == after


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        pytest.param("", {}, id="nothing to copy"),
        pytest.param(
            "kubernetes.io/os=linux kubernetes.io/arch=amd64",
            {"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"},
            id="old names are added",
        ),
        pytest.param(
            "kubernetes.io/os=linux beta.kubernetes.io/os=windows", {"beta.kubernetes.io/os": "linux"}, id="corrected"
        ),
        pytest.param("beta.kubernetes.io/os=windows", {}, id="an old name alone is left"),
    ],
)
def test_old_labels_follow_the_new_ones(labels: str, wanted: dict[str, str]) -> None:
    assert labels_to_set(node(labels=labels)) == wanted
