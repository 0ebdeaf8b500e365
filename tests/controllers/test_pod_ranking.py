"""Which pods of a set go first."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.controllers.pod_ranking import deletion_cost, pods_to_delete
from tests.controllers.builders import NOW_S, pod_view


@pytest.mark.parametrize(
    ("stays", "goes"),
    [
        pytest.param({"on": "n1"}, {"on": ""}, id="one without a node before one that is placed"),
        pytest.param({"phase": "Running"}, {"phase": "Pending"}, id="Pending before Running"),
        pytest.param({"phase": "Running"}, {"phase": "Unknown"}, id="Unknown before Running"),
        pytest.param({"phase": "Unknown"}, {"phase": "Pending"}, id="Pending before Unknown"),
        pytest.param({"ready_for_s": 10}, {}, id="not ready before ready"),
        pytest.param({"cost": "10"}, {"cost": "-10"}, id="cheap before dear"),
        pytest.param({}, {"cost": "-1"}, id="cheap before one without a cost"),
        pytest.param({"ready_for_s": 100_000}, {"ready_for_s": 10}, id="ready for a short time before long ready"),
        pytest.param({"restarts": 1}, {"restarts": 2}, id="often restarted before seldom"),
        pytest.param({"age_s": 100_000}, {"age_s": 10}, id="young before old"),
        pytest.param({"cost": "-5", "ready_for_s": 5}, {"cost": "5"}, id="readiness counts more than cost"),
        pytest.param(
            {"ready_for_s": 9, "restarts": 0}, {"ready_for_s": 9, "restarts": 1}, id="ready at once: restarts"
        ),
    ],
)
def test_of_two_pods_one_goes(stays: dict[str, Any], goes: dict[str, Any]) -> None:
    first, second = pod_view("a", **stays), pod_view("b", **goes)
    assert pods_to_delete([first, second], [], 1, NOW_S) == [second]
    assert pods_to_delete([second, first], [], 1, NOW_S) == [second]


def test_times_of_the_same_power_of_two_are_equal_and_the_uid_decides() -> None:
    # 2^33 ns are 8.6 s, 2^34 are 17.2 s: both ages lie in between.
    young, old = pod_view("a", ready_for_s=9), pod_view("b", ready_for_s=16)
    assert pods_to_delete([old, young], [], 1, NOW_S) == [young]
    young, old = pod_view("b", ready_for_s=9), pod_view("a", ready_for_s=16)
    assert pods_to_delete([old, young], [], 1, NOW_S) == [old]


def test_a_node_with_more_related_pods_gives_first() -> None:
    pods = [pod_view("a", on="n1", ready_for_s=5), pod_view("b", on="n2", ready_for_s=5)]
    related = [*pods, pod_view("other", on="n1")]
    assert pods_to_delete([*reversed(pods)], related, 1, NOW_S) == [pods[0]]


def test_finished_pods_do_not_count_as_related() -> None:
    pods = [pod_view("a", on="n1", ready_for_s=100), pod_view("b", on="n2", ready_for_s=5)]
    related = [*pods, pod_view("done", on="n1", phase="Succeeded"), pod_view("going", on="n1", going=True)]
    assert pods_to_delete(pods, related, 1, NOW_S) == [pods[1]]


def test_if_all_go_nobody_is_compared() -> None:
    pods = [pod_view("a"), pod_view("b")]
    assert pods_to_delete(pods, [], 2, NOW_S) == pods


@pytest.mark.parametrize(
    ("text", "cost"),
    [("100", 100), ("-7", -7), ("0", 0), ("+5", 0), ("007", 0), ("1_0", 0), ("many", 0), ("", 0), ("9999999999", 0)],
)
def test_what_is_no_number_costs_nothing(text: str, cost: int) -> None:
    assert deletion_cost({"controller.kubernetes.io/pod-deletion-cost": text}) == cost
