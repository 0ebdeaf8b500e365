"""Taints and tolerations."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mooring.api.tolerations import (
    count_intolerable_preferences,
    find_untolerated_taint,
    tolerates,
    tolerations_of_preferences,
)
from mooring.api.views.pod import Toleration
from tests.api.builders import node, taint, toleration

NOT_READY = "node.kubernetes.io/not-ready:NoExecute"


@pytest.mark.parametrize(
    ("tolerated", "tainted", "answer"),
    [
        (toleration("gpu=true:NoSchedule"), "gpu=true:NoSchedule", True),
        (toleration("gpu=false:NoSchedule"), "gpu=true:NoSchedule", False),
        (toleration("gpu=true:NoExecute"), "gpu=true:NoSchedule", False),
        (toleration("fpga=true:NoSchedule"), "gpu=true:NoSchedule", False),
        (toleration("gpu:NoSchedule"), "gpu=true:NoSchedule", True),
        (toleration("gpu"), "gpu=true:NoExecute", True),
        (toleration(":NoSchedule"), "gpu=true:NoSchedule", True),
        (toleration(":NoSchedule"), "gpu=true:NoExecute", False),
        (toleration(""), NOT_READY, True),
        (Toleration(key="gpu", value="true"), "gpu=true:NoSchedule", True),
        (Toleration(key="gpu"), "gpu:NoSchedule", True),
        (Toleration(key="gpu"), "gpu=true:NoSchedule", False),
        (Toleration(value="true"), "gpu=true:NoSchedule", True),
        (Toleration(key="gpu", operator="Exists", value="ignored"), "gpu=true:NoSchedule", True),
        (Toleration(key="sla", operator="Lt", value="9"), "sla=5:NoSchedule", False),
        (Toleration(key="sla", operator="Gt", value="1"), "sla=5:NoSchedule", False),
        (Toleration(key="gpu", operator="Bogus", value="true"), "gpu=true:NoSchedule", False),
    ],
)
def test_who_tolerates_what(tolerated: Toleration, tainted: str, answer: bool) -> None:
    assert tolerates(tolerated, taint(tainted)) is answer


@pytest.mark.parametrize(
    ("taints", "tolerations", "first"),
    [
        ([], [], None),
        (["gpu:NoSchedule"], [], "gpu:NoSchedule"),
        (["gpu:NoSchedule"], ["gpu"], None),
        (["gpu:PreferNoSchedule"], [], None),
        (["gpu:PreferNoSchedule", NOT_READY], [], NOT_READY),
        (["a:NoSchedule", "b:NoSchedule", "c:NoExecute"], ["a", "c"], "b:NoSchedule"),
        (["a:NoSchedule", "a:NoExecute"], ["a:NoSchedule"], "a:NoExecute"),
        (["gpu:Bogus"], [], None),
    ],
)
def test_the_first_taint_that_keeps_a_pod_away(
    taints: Sequence[str], tolerations: Sequence[str], first: str | None
) -> None:
    found = find_untolerated_taint(node(taints=taints).spec.taints, [toleration(text) for text in tolerations])
    assert found == (taint(first) if first is not None else None)


@pytest.mark.parametrize(
    ("taints", "tolerations", "count"),
    [
        ([], [], 0),
        (["a:PreferNoSchedule", "b:PreferNoSchedule"], [], 2),
        (["a:PreferNoSchedule", "b:PreferNoSchedule"], ["a"], 1),
        (["a:PreferNoSchedule"], [":PreferNoSchedule"], 0),
        (["a:NoSchedule", "b:NoExecute"], [], 0),
        (["a:PreferNoSchedule"], ["a:NoSchedule"], 1),
    ],
)
def test_how_many_soft_taints_are_not_tolerated(taints: Sequence[str], tolerations: Sequence[str], count: int) -> None:
    pods_tolerations = tolerations_of_preferences([toleration(text) for text in tolerations])
    assert count_intolerable_preferences(node(taints=taints).spec.taints, pods_tolerations) == count


def test_only_some_tolerations_can_tolerate_a_soft_taint() -> None:
    everything = [toleration(text) for text in ("a", "b:NoSchedule", "c:PreferNoSchedule", "d:NoExecute")]
    assert [kept.key for kept in tolerations_of_preferences(everything)] == ["a", "c"]
