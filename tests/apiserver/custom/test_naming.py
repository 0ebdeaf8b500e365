"""Which names a definition gets."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.naming import (
    APPROVED_ANNOTATION,
    TakenNames,
    approval_status,
    condition,
    condition_of,
    established_status,
    is_true,
    named_status,
    taken_names,
    with_condition,
)
from tests.apiserver.custom.definitions import definition

NOW, LATER = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"


def test_conditions_are_found() -> None:
    assert is_true(definition(), "Established")
    assert not is_true(definition(accepted=False), "Established")
    assert condition_of(definition(), "Terminating") is None


def test_the_time_of_a_condition_changes_with_its_status_only() -> None:
    wanted = condition("Terminating", is_met=True, reason="R", message="m")
    status = with_condition({}, wanted, NOW)
    assert status == {"conditions": [{**wanted, "lastTransitionTime": NOW}]}
    other = condition("Terminating", is_met=True, reason="S", message="n")
    assert with_condition(status, other, LATER) == {"conditions": [{**other, "lastTransitionTime": NOW}]}
    done = condition("Terminating", is_met=False, reason="S", message="n")
    assert with_condition(status, done, LATER) == {"conditions": [{**done, "lastTransitionTime": LATER}]}


def test_free_names_are_accepted_and_the_kind_is_established_then() -> None:
    fresh = definition(accepted=False)
    named = named_status(fresh, TakenNames(), NOW)
    assert named is not None
    assert named["acceptedNames"] == fresh["spec"]["names"]
    assert [(each["type"], each["status"], each["reason"]) for each in named["conditions"]] == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "False", "Installing"),
    ]
    established = established_status({**fresh, "status": named}, NOW)
    assert established is not None
    assert [(each["status"], each["reason"]) for each in established["conditions"]] == [
        ("True", "NoConflicts"),
        ("True", "InitialNamesAccepted"),
    ]
    done = {**fresh, "status": established}
    assert named_status(done, TakenNames(), NOW) is None
    assert established_status(done, NOW) is None


@pytest.mark.parametrize(
    ("taken", "reason", "message"),
    [
        pytest.param(TakenNames(resources={"widgets"}), "PluralConflict", '"widgets" is already in use', id="plural"),
        pytest.param(TakenNames(resources={"widget"}), "SingularConflict", '"widget" is already in use', id="singular"),
        pytest.param(TakenNames(kinds={"Widget"}), "KindConflict", '"Widget" is already in use', id="kind"),
        pytest.param(TakenNames(kinds={"WidgetList"}), "ListKindConflict", '"WidgetList" is already in use', id="list"),
    ],
)
def test_taken_names_are_not(taken: TakenNames, reason: str, message: str) -> None:
    fresh = definition(accepted=False)
    status = named_status(fresh, taken, NOW)
    assert status is not None
    found = condition_of({"status": status}, "NamesAccepted")
    assert found is not None
    assert (found["status"], found["reason"], found["message"]) == ("False", reason, message)
    established = condition_of({"status": status}, "Established")
    assert established is not None
    assert (established["status"], established["reason"]) == ("False", "NotAccepted")


def test_all_conflicting_short_names_are_reported_together() -> None:
    fresh = definition(accepted=False)
    fresh["spec"]["names"]["shortNames"] = ["w", "x", "y"]
    status = named_status(fresh, TakenNames(resources={"w", "x"}), NOW)
    assert status is not None
    found = condition_of({"status": status}, "NamesAccepted")
    assert found is not None
    assert found["message"] == '["w" is already in use, "x" is already in use]'
    assert "shortNames" not in status["acceptedNames"]


def test_names_of_a_group() -> None:
    taken = taken_names([definition(), definition(accepted=False)])
    assert {"widgets", "widget"} <= taken.resources
    assert {"Widget", "WidgetList"} <= taken.kinds


@pytest.mark.parametrize(
    ("annotations", "reason", "is_met"),
    [
        pytest.param({}, "MissingAnnotation", "False", id="missing"),
        pytest.param({APPROVED_ANNOTATION: "unapproved, test"}, "UnapprovedAnnotation", "False", id="bypassed"),
        pytest.param({APPROVED_ANNOTATION: "https://example.com/1"}, "ApprovedAnnotation", "True", id="approved"),
        pytest.param({APPROVED_ANNOTATION: "yes"}, "InvalidAnnotation", "False", id="invalid"),
    ],
)
def test_groups_that_belong_to_kubernetes(annotations: Document, reason: str, is_met: str) -> None:
    protected = definition()
    protected["spec"]["group"] = "foo.k8s.io"
    protected["metadata"]["annotations"] = annotations
    status = approval_status(protected, NOW)
    assert status is not None
    assert (status["conditions"][-1]["reason"], status["conditions"][-1]["status"]) == (reason, is_met)
    assert approval_status({**protected, "status": status}, NOW) is None
    assert approval_status(definition(), NOW) is None
