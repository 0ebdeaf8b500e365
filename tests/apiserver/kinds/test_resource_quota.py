"""Tests of kinds.resource_quota."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import RESOURCE_QUOTA
from mooring.apiserver.kinds.resource_quota import validate_quota_spec, validate_quota_status, validate_scopes_update
from tests.apiserver.core_documents import call, changed, created, document, messages, strategy

UNSUPPORTED = "unsupported scope applied to resource"


@pytest.mark.parametrize(
    ("hard", "errors"),
    [
        pytest.param({"pods": "1", "requests.cpu": "500m", "count/jobs.batch": "2"}, [], id="standard resources"),
        pytest.param({"hugepages-2Mi": "1", "requests.hugepages-2Mi": "1"}, [], id="huge pages"),
        pytest.param(
            {"storage": "1"},
            ['spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota'],
            id="storage without a prefix",
        ),
        pytest.param(
            {"pods": "1500m"},
            ['spec.hard[pods]: Invalid value: "1500m": must be an integer'],
            id="a fractional number of pods",
        ),
        pytest.param(
            {"cpu": "-1"},
            ['spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
            id="a negative amount",
        ),
    ],
)
def test_hard_limits_are_validated(hard: Document, errors: list[str]) -> None:
    assert messages(validate_quota_spec({"hard": hard}, "spec")) == errors
    assert messages(validate_quota_status({"hard": hard})) == [error.replace("spec", "status", 1) for error in errors]


@pytest.mark.parametrize(
    ("scopes", "hard", "details"),
    [
        pytest.param(["BestEffort"], {"pods": "1"}, [], id="a scope that supports the resource"),
        pytest.param(
            ["BestEffort"],
            {"cpu": "1", "memory": "1"},
            [UNSUPPORTED, UNSUPPORTED],
            id="a scope that supports no resource",
        ),
        pytest.param(
            ["VolumeAttributesClass"], {"pods": "1", "requests.storage": "1"}, [UNSUPPORTED], id="a scope of claims"
        ),
        pytest.param(["Odd"], {"cpu": "1"}, ["unsupported scope"], id="an unknown scope"),
        pytest.param(
            ["Terminating", "NotTerminating"], {}, ["conflicting scopes"], id="scopes that exclude each other"
        ),
    ],
)
def test_scopes_are_validated(scopes: list[str], hard: Document, details: list[str]) -> None:
    errors = validate_quota_spec({"scopes": scopes, "hard": hard}, "spec")
    assert [(error.field, error.value, error.detail) for error in errors] == [
        ("spec.scopes", scopes, detail) for detail in details
    ]


@pytest.mark.parametrize(
    ("requirement", "errors"),
    [
        pytest.param({"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}, [], id="certain classes"),
        pytest.param(
            {"scopeName": "PriorityClass", "operator": "In"},
            [
                "values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for "
                "scope selector"
            ],
            id="no class",
        ),
        pytest.param(
            {"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]},
            [
                "values: Invalid value: [\"a\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for "
                "scope selector"
            ],
            id="Exists with a value",
        ),
        pytest.param(
            {"scopeName": "Odd", "operator": "Is"},
            [
                'scopeName: Invalid value: "Odd": unsupported scope',
                'operator: Invalid value: "Is": not a valid selector operator',
            ],
            id="an unknown scope and operator",
        ),
    ],
)
def test_scope_selectors_are_validated(requirement: Document, errors: list[str]) -> None:
    found = messages(validate_quota_spec({"scopeSelector": {"matchExpressions": [requirement]}}, "spec"))
    assert found == [f"spec.scopeSelector.matchExpressions.{error}" for error in errors]


def test_best_effort_in_a_scope_selector_allows_only_exists() -> None:
    requirement = {"scopeName": "BestEffort", "operator": "In", "values": ["a"]}
    errors = validate_quota_spec({"scopeSelector": {"matchExpressions": [requirement]}, "hard": {"cpu": "1"}}, "spec")
    assert [error.field.rpartition(".")[2] for error in errors] == ["matchExpressions", "operator"]
    assert errors[1].detail.startswith("must be 'Exists' when scope is any of")


def test_scopes_are_immutable() -> None:
    assert validate_scopes_update({"scopes": ["a", "b"]}, {"scopes": ["b", "a"]}) == []
    assert messages(validate_scopes_update({}, {"scopes": ["a"]})) == [
        "spec.scopes: Invalid value: null: field is immutable"
    ]


def test_a_new_quota_has_an_empty_status() -> None:
    quota = document(RESOURCE_QUOTA, spec={"hard": {"cpu": "0.0001"}}, status={"hard": {"odd": "1"}})
    assert created(RESOURCE_QUOTA, quota) == []
    assert quota["spec"] == {"hard": {"cpu": "1m"}}
    assert quota["status"] == {}


def test_updates_and_status_updates_of_quotas_are_validated() -> None:
    old = document(RESOURCE_QUOTA, spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"]})
    assert changed(RESOURCE_QUOTA, old, spec={"hard": {"pods": "2"}})[0] == [
        "spec.scopes: Invalid value: null: field is immutable"
    ]
    errors, quota = changed(RESOURCE_QUOTA, old, "status", spec={}, status={"used": {"pods": "500m"}})
    assert errors == ['status.used[pods]: Invalid value: "500m": must be an integer']
    assert quota["spec"] == old["spec"]


def test_requests_above_limits_have_a_warning() -> None:
    hard: Document = {"cpu": "2", "limits.cpu": "1", "requests.memory": "1Gi", "limits.memory": "1Gi"}
    quota = document(RESOURCE_QUOTA, spec={"hard": hard})
    assert strategy(RESOURCE_QUOTA).warnings_on_create(quota, call(RESOURCE_QUOTA)) == [
        "ResourceQuota cpu (2) should be less than limits.cpu (1)"
    ]
    assert strategy(RESOURCE_QUOTA).warnings_on_update(quota, quota, call(RESOURCE_QUOTA)) == []
