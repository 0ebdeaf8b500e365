"""Quotas are wanted through one door and counted through another."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import RESOURCE_QUOTA
from tests.apiserver.core_documents import call, changed, created, document, strategy


def test_a_new_quota_has_counted_nothing() -> None:
    quota = document(RESOURCE_QUOTA, spec={"hard": {"cpu": "0.0001"}}, status={"hard": {"odd": "1"}})
    assert created(RESOURCE_QUOTA, quota) == []
    assert quota["spec"] == {"hard": {"cpu": "1m"}}
    assert quota["status"] == {}


def test_each_door_has_its_rules() -> None:
    old = document(RESOURCE_QUOTA, spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"]})
    assert changed(RESOURCE_QUOTA, old, spec={"hard": {"pods": "2"}})[0] == [
        "spec.scopes: Invalid value: null: field is immutable"
    ]
    faults, quota = changed(RESOURCE_QUOTA, old, "status", spec={}, status={"used": {"pods": "500m"}})
    assert faults == ['status.used[pods]: Invalid value: "500m": must be an integer']
    assert quota["spec"] == old["spec"]


def test_requests_above_limits_are_told() -> None:
    hard: Document = {"cpu": "2", "limits.cpu": "1", "requests.memory": "1Gi", "limits.memory": "1Gi"}
    quota = document(RESOURCE_QUOTA, spec={"hard": hard})
    assert strategy(RESOURCE_QUOTA).warnings_on_create(quota, call(RESOURCE_QUOTA)) == [
        "ResourceQuota cpu (2) should be less than limits.cpu (1)"
    ]
    assert strategy(RESOURCE_QUOTA).warnings_on_update(quota, quota, call(RESOURCE_QUOTA)) == []
