"""Roles and bindings, created and changed."""

from __future__ import annotations

import pytest

from tests.apiserver.workload_builders import body, created, updated


@pytest.mark.parametrize("kind", ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"])
@pytest.mark.parametrize(
    ("name", "faults"),
    [
        pytest.param("system:Anything at all", [], id="any name"),
        pytest.param("a/b", ["metadata.name: Invalid value: \"a/b\": may not contain '/'"], id="not in an address"),
    ],
)
def test_names(kind: str, name: str, faults: list[str]) -> None:
    assert created(body(kind, metadata__name=name)).faults == faults


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
def test_no_rules_are_stored_as_none(kind: str) -> None:
    assert created(body(kind, rules=[])).obj["rules"] is None


def test_a_binding_cannot_be_turned_to_another_role() -> None:
    old = created(body("RoleBinding")).obj
    (fault,) = updated(body("RoleBinding", roleRef__name="other"), old).faults
    assert fault.endswith("cannot change roleRef")


def test_an_update_is_judged_as_new() -> None:
    old = created(body("Role")).obj
    assert updated(body("Role", rules=[{"verbs": ["get"], "apiGroups": [""]}]), old).faults == [
        "rules[0].resources: Required value: resource rules must supply at least one resource"
    ]
