"""Names under which kinds are counted, and scopes with values."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert_as
from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, NODE, SECRET, Kind
from mooring.api.quota.counting import kind_counted_as, matches_value, names_of, scopes_of
from mooring.api.views.quotas import ResourceQuotaSpec, ScopeRequirement


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        pytest.param(DEPLOYMENT, {"count/deployments.apps"}, id="a kind of a group"),
        pytest.param(CONFIG_MAP, {"count/configmaps", "configmaps"}, id="a kind with an older name"),
    ],
)
def test_a_kind_is_counted_under_all_its_names(kind: Kind, names: set[str]) -> None:
    assert names_of(kind) == names
    assert {kind_counted_as(name) for name in names} == {kind}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("secrets", SECRET, id="an older name"),
        pytest.param("deployments.apps", None, id="a kind has to be counted"),
        pytest.param("count/unheard.of", None, id="a kind that there is not"),
        pytest.param(f"count/{NODE.resource}", None, id="a kind outside of namespaces"),
    ],
)
def test_a_name_means_a_kind(name: str, kind: Kind | None) -> None:
    assert kind_counted_as(name) is kind


def test_the_scopes_of_a_quota_are_those_it_names_and_those_it_selects() -> None:
    selected = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    spec = convert_as(ResourceQuotaSpec, {"scopes": ["Terminating"], "scopeSelector": {"matchExpressions": [selected]}})
    assert [(scope.scope_name, scope.operator) for scope in scopes_of(spec)] == [
        ("Terminating", "Exists"),
        ("PriorityClass", "In"),
    ]
    assert scopes_of(ResourceQuotaSpec()) == []


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("In", "a", True),
        ("In", "b", False),
        ("In", "", False),
        ("NotIn", "a", False),
        ("NotIn", "b", True),
        ("NotIn", "", True),
        ("Exists", "b", True),
        ("Exists", "", False),
        ("DoesNotExist", "b", False),
        ("DoesNotExist", "", True),
        ("Unheard", "a", False),
    ],
)
def test_scopes_with_values(operator: str, value: str, expected: bool) -> None:
    scope = ScopeRequirement(scope_name="PriorityClass", operator=operator, values=("a",))
    assert matches_value(scope, value) is expected
