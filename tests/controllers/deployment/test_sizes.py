"""How many pods each ReplicaSet of a Deployment gets."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.views.workloads import ReplicaSet
from mooring.api.well_known import DEPLOYMENT_DESIRED_REPLICAS, DEPLOYMENT_MAX_REPLICAS
from mooring.controllers.deployment.sizes import (
    Resize,
    is_scaling,
    max_surge,
    max_unavailable,
    new_set_size,
    plan_scaling,
    rolling_down,
    rolling_up,
    size_annotations,
)
from mooring.controllers.pods import scaled_value
from tests.controllers.builders import deployment_view, replica_set_view


def sizes(resizes: list[Resize]) -> list[tuple[str, int]]:
    return [(resize.target.metadata.name, resize.replicas) for resize in resizes]


def grown_at(name: str, size: int, desired: int, most: int, **parts: Any) -> ReplicaSet:
    """A ReplicaSet that got its size when the Deployment had another one."""
    annotations = {DEPLOYMENT_DESIRED_REPLICAS: str(desired), DEPLOYMENT_MAX_REPLICAS: str(most)}
    return replica_set_view(name, replicas=size, annotations=annotations, **parts)


@pytest.mark.parametrize(
    ("value", "total", "is_rounded_up", "result"),
    [
        pytest.param(3, 10, True, 3, id="a count is what it is"),
        pytest.param("25%", 10, True, 3, id="a surge is rounded up"),
        pytest.param("25%", 10, False, 2, id="the unavailable are rounded down"),
        pytest.param("100%", 7, True, 7, id="all"),
        pytest.param("0%", 7, True, 0, id="none"),
        pytest.param(None, 7, True, 0, id="nothing said"),
        pytest.param("half", 7, True, 0, id="neither"),
    ],
)
def test_a_count_or_a_percentage(value: int | str | None, total: int, is_rounded_up: bool, result: int) -> None:
    assert scaled_value(value, total, is_rounded_up=is_rounded_up) == result


@pytest.mark.parametrize(
    ("parts", "surge", "unavailable"),
    [
        pytest.param({"replicas": 10}, 3, 2, id="the defaults"),
        pytest.param({"replicas": 1}, 1, 0, id="one replica: one more, none fewer"),
        pytest.param({"replicas": 3, "surge": 0, "unavailable": 0}, 0, 1, id="none and none would never move"),
        pytest.param({"replicas": 3, "surge": 0, "unavailable": "10%"}, 0, 1, id="nor would what rounds to none"),
        pytest.param({"replicas": 2, "unavailable": 5}, 1, 2, id="no more than there are can be unavailable"),
        pytest.param({"replicas": 0, "unavailable": 5}, 0, 0, id="of none none"),
        pytest.param({"replicas": 4, "strategy": "Recreate"}, 0, 0, id="Recreate knows neither"),
    ],
)
def test_what_a_deployment_allows(parts: dict[str, Any], surge: int, unavailable: int) -> None:
    deployment = deployment_view(**parts)
    assert (max_surge(deployment), max_unavailable(deployment)) == (surge, unavailable)


@pytest.mark.parametrize(
    ("old", "current", "size"),
    [
        pytest.param(10, 0, 3, id="beside ten old ones only the surge"),
        pytest.param(8, 3, 5, id="as many more as old ones have gone"),
        pytest.param(0, 0, 10, id="without old ones all at once"),
        pytest.param(13, 0, 0, id="no room"),
    ],
)
def test_how_large_the_new_set_may_be(old: int, current: int, size: int) -> None:
    sets = [replica_set_view("old", replicas=old), replica_set_view("new", replicas=current)]
    assert new_set_size(deployment_view(replicas=10), sets, current) == size


@pytest.mark.parametrize(
    ("new", "resizes"),
    [
        pytest.param(4, [], id="large enough"),
        pytest.param(6, [("new", 4)], id="too large"),
        pytest.param(0, [("new", 1)], id="as large as the surge lets it"),
    ],
)
def test_rolling_up(new: int, resizes: list[tuple[str, int]]) -> None:
    new_set, old_set = replica_set_view("new", replicas=new), replica_set_view("old", replicas=4, available=4)
    assert sizes(rolling_up(deployment_view(replicas=4), new_set, [old_set, new_set])) == resizes


@pytest.mark.parametrize(
    ("new", "old", "resizes"),
    [
        pytest.param((1, 0), [(4, 4)], [("old0", 3)], id="down to what must be available"),
        pytest.param((2, 1), [(3, 3)], [("old0", 2)], id="one new one is available: one old one goes"),
        pytest.param((2, 0), [(3, 3)], [], id="nothing new is available: nothing goes"),
        pytest.param((4, 4), [(1, 1)], [("old0", 0)], id="the last one"),
        pytest.param((1, 0), [(4, 1)], [("old0", 3)], id="one of the unavailable, as far as it is allowed"),
        pytest.param((1, 1), [(4, 2)], [("old0", 2)], id="the unavailable, and then there is no surplus"),
        pytest.param((1, 1), [(1, 0), (3, 3)], [("old0", 0), ("old1", 2)], id="the sick first, then the oldest"),
        pytest.param((2, 2), [(4, 3)], [("old0", 3), ("old0", 1)], id="one of them twice: sick, then surplus"),
        pytest.param((2, 1), [(3, 4)], [], id="more available than asked for: it is still shrinking"),
        pytest.param((4, 4), [(0, 0)], [], id="nothing left"),
    ],
)
def test_rolling_down(new: tuple[int, int], old: list[tuple[int, int]], resizes: list[tuple[str, int]]) -> None:
    new_set = replica_set_view("new", replicas=new[0], available=new[1], created=100)
    old_sets = [
        replica_set_view(f"old{index}", replicas=size, available=available, created=index)
        for index, (size, available) in enumerate(old)
    ]
    assert sizes(rolling_down(deployment_view(replicas=4), new_set, old_sets)) == resizes


@pytest.mark.parametrize(
    ("desired", "is_scaled"),
    [("4", False), ("3", True), ("many", False), ("-1", False), ("99999999999", False)],
)
def test_a_deployment_was_scaled_if_its_sets_remember_another_size(desired: str, is_scaled: bool) -> None:
    sets = [replica_set_view("a", replicas=2, annotations={DEPLOYMENT_DESIRED_REPLICAS: desired})]
    assert is_scaling(deployment_view(replicas=4), sets) is is_scaled


def test_sets_without_pods_do_not_remember() -> None:
    sets = [
        replica_set_view("a", replicas=0, annotations={DEPLOYMENT_DESIRED_REPLICAS: "9"}),
        replica_set_view("b", replicas=1),
    ]
    assert not is_scaling(deployment_view(replicas=4), sets)


def test_scaling_resizes_the_only_set_with_pods() -> None:
    new, old = grown_at("new", 0, 3, 4), grown_at("old", 3, 3, 4)
    assert sizes(plan_scaling(deployment_view(replicas=5), new, [old])) == [("old", 5)]


def test_scaling_resizes_the_new_one_if_none_has_pods() -> None:
    new, old = grown_at("new", 0, 0, 0), grown_at("old", 0, 0, 0)
    assert sizes(plan_scaling(deployment_view(replicas=5), new, [old])) == [("new", 5)]


def test_scaling_resizes_the_youngest_if_none_is_new() -> None:
    old = [replica_set_view("a", replicas=0, created=2), replica_set_view("b", replicas=0, created=1)]
    assert sizes(plan_scaling(deployment_view(replicas=5), None, old)) == [("a", 5)]


def test_what_has_its_size_stays() -> None:
    assert plan_scaling(deployment_view(replicas=5), grown_at("new", 5, 5, 5), []) == []


def test_a_set_of_its_planned_size_still_gets_its_annotations() -> None:
    new, old = grown_at("new", 0, 4, 5), grown_at("old", 3, 4, 5)
    assert sizes(plan_scaling(deployment_view(replicas=3), new, [old])) == [("old", 3)]


def test_old_sets_go_when_the_new_one_is_complete() -> None:
    new, old = grown_at("new", 5, 5, 7, available=5), grown_at("old", 2, 5, 7)
    assert sizes(plan_scaling(deployment_view(replicas=5), new, [old])) == [("old", 0)]


@pytest.mark.parametrize(
    ("replicas", "sets", "resizes"),
    [
        pytest.param(20, [("new", 5, 2), ("old", 8, 1)], {"new": 10, "old": 15}, id="up: 13 of 10+3 become 25"),
        pytest.param(5, [("new", 5, 2), ("old", 8, 1)], {"new": 3, "old": 4}, id="down: 13 become 7"),
        pytest.param(0, [("new", 5, 2), ("old", 8, 1)], {"new": 0, "old": 0}, id="to nothing"),
        pytest.param(
            11, [("young", 6, 2), ("old", 6, 1)], {"young": 8, "old": 6}, id="of equals the youngest gets the rest"
        ),
        pytest.param(10, [("new", 5, 2), ("old", 8, 1)], {"new": 5, "old": 8}, id="nothing to share"),
    ],
)
def test_scaling_in_the_middle_of_a_rollout_is_shared_out(
    replicas: int, sets: list[tuple[str, int, int]], resizes: dict[str, int]
) -> None:
    views = [grown_at(name, size, 10, 13, created=created) for name, size, created in sets]
    assert dict(sizes(plan_scaling(deployment_view(replicas=replicas), views[0], views[1:]))) == resizes


def test_recreate_shares_nothing_out() -> None:
    new, old = grown_at("new", 2, 4, 4), grown_at("old", 2, 4, 4)
    assert plan_scaling(deployment_view(replicas=8, strategy="Recreate"), new, [old]) == []


def test_a_set_remembers_the_size_that_it_was_made_for() -> None:
    assert size_annotations(deployment_view(replicas=10)) == {
        DEPLOYMENT_DESIRED_REPLICAS: "10",
        DEPLOYMENT_MAX_REPLICAS: "13",
    }
