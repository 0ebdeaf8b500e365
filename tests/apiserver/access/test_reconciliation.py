"""Default roles and bindings get back what they lack, and keep what users have added."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.default_roles import default_objects
from mooring.apiserver.access.reconciliation import reconciled
from tests.apiserver.access.builders import may

DEFAULTS = {(resource, document["metadata"]["name"]): document for resource, _, document in default_objects()}
ROLE = DEFAULTS["clusterroles", "system:kube-dns"]
AGGREGATED = DEFAULTS["clusterroles", "view"]
BINDING = DEFAULTS["clusterrolebindings", "system:basic-user"]


def _with(document: Document, **changes: Any) -> Document:
    return {**deepcopy(document), **changes}


@pytest.mark.parametrize("wanted", [ROLE, AGGREGATED, BINDING], ids=["a role", "a gathering role", "a binding"])
def test_what_lacks_nothing_is_left_alone(wanted: Document) -> None:
    assert reconciled(deepcopy(wanted), wanted) is None


def test_missing_rights_are_added_and_others_stay() -> None:
    changed = reconciled(_with(ROLE, rules=[may("list", "endpoints services"), may("get", "pods")]), ROLE)
    assert changed is not None
    assert changed["rules"] == [
        may("list", "endpoints services"),
        may("get", "pods"),
        may("watch", "endpoints"),
        may("watch", "services"),
    ]


def test_more_rights_than_by_default_are_left_alone() -> None:
    assert reconciled(_with(ROLE, rules=[may("*", "*", "*")]), ROLE) is None


def test_missing_selectors_are_added() -> None:
    other = {"matchLabels": {"a": "b"}}
    changed = reconciled(_with(AGGREGATED, aggregationRule={"clusterRoleSelectors": [other]}), AGGREGATED)
    assert changed is not None
    assert changed["aggregationRule"]["clusterRoleSelectors"] == [
        other,
        *AGGREGATED["aggregationRule"]["clusterRoleSelectors"],
    ]


def test_a_role_that_gathers_nothing_by_default_gathers_nothing() -> None:
    changed = reconciled(_with(ROLE, aggregationRule={"clusterRoleSelectors": []}), ROLE)
    assert changed == ROLE


def test_missing_subjects_are_added_and_others_stay() -> None:
    anna = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "anna"}
    changed = reconciled(_with(BINDING, subjects=[anna]), BINDING)
    assert changed is not None
    assert changed["subjects"] == [anna, *BINDING["subjects"]]


def test_a_binding_that_was_led_astray_is_replaced() -> None:
    assert reconciled(_with(BINDING, roleRef={"kind": "ClusterRole", "name": "x"}), BINDING) is BINDING


def test_labels_and_annotations_come_back_unless_they_were_changed() -> None:
    stored = deepcopy(ROLE)
    stored["metadata"]["labels"] = {"kubernetes.io/bootstrapping": "mine", "a": "b"}
    del stored["metadata"]["annotations"]
    changed = reconciled(stored, ROLE)
    assert changed is not None
    assert changed["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "mine", "a": "b"}
    assert changed["metadata"]["annotations"] == ROLE["metadata"]["annotations"]


def test_its_owner_may_forbid_it() -> None:
    stored = _with(ROLE, rules=[])
    stored["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
    assert reconciled(stored, ROLE) is None
