"""What a namespace that goes says about itself."""

from __future__ import annotations

from collections import Counter

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT
from mooring.controllers.namespace_conditions import Emptying, conditions_after


def told(emptying: Emptying, *, with_totals: bool = True) -> dict[str, tuple[str, str]]:
    """Reason and message of those conditions that are true."""
    conditions = conditions_after([], emptying, "now", with_totals=with_totals)
    assert len(conditions) == 5
    assert {condition["lastTransitionTime"] for condition in conditions} == {"now"}
    return {each["type"]: (each["reason"], each["message"]) for each in conditions if each["status"] == "True"}


HELD = Emptying(remaining={CONFIG_MAP: 2, DEPLOYMENT: 1}, finalizers=Counter({"b.example.com": 2, "a.example.com": 1}))


def test_a_namespace_that_is_empty_is_well() -> None:
    assert told(Emptying()) == {}


def test_what_remains_is_told_in_order() -> None:
    assert told(HELD) == {
        "NamespaceContentRemaining": (
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances, "
            "deployments.apps has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: "
            "a.example.com in 1 resource instances, b.example.com in 2 resource instances",
        ),
    }


def test_while_pods_remain_the_rest_is_not_counted() -> None:
    assert told(HELD, with_totals=False) == {}


def test_errors_are_told_in_order() -> None:
    assert told(Emptying(errors=["second", "first"])) == {
        "NamespaceDeletionContentFailure": (
            "ContentDeletionFailed",
            "Failed to delete all resource types, 2 remaining: first, second",
        )
    }


@pytest.mark.parametrize(
    ("second", "time"),
    [pytest.param(Emptying(), "later", id="another status"), pytest.param(HELD, "now", id="the same status")],
)
def test_the_time_changes_with_the_status(second: Emptying, time: str) -> None:
    first = conditions_after([], HELD, "now", with_totals=True)
    after = conditions_after(first, second, "later", with_totals=True)
    assert _condition(after, "NamespaceContentRemaining")["lastTransitionTime"] == time
    assert _condition(after, "NamespaceDeletionContentFailure")["lastTransitionTime"] == "now"


def test_without_a_change_it_is_the_very_list() -> None:
    first = conditions_after([], HELD, "now", with_totals=True)
    assert conditions_after(first, HELD, "later", with_totals=True) is first


def _condition(conditions: list[Document], type: str) -> Document:
    [found] = [condition for condition in conditions if condition["type"] == type]
    return found
