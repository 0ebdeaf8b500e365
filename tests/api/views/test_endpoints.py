"""Endpoints, quotas and accounts, read and left whole."""

from __future__ import annotations

import msgspec
import pytest

from mooring.api.decode import decode
from mooring.api.document import Document
from mooring.api.views.accounts import ClusterRole
from mooring.api.views.endpoints import EndpointSlice
from mooring.api.views.meta import ObjectWithRaw
from mooring.api.views.quotas import ResourceQuota

SLICE: Document = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {"name": "s"},
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": False}, "deprecatedTopology": {"a": "b"}}],
    "ports": None,
}
QUOTA: Document = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q"},
    "spec": {"hard": {"pods": "2"}, "scopeSelector": {"matchExpressions": [{"scopeName": "Terminating"}]}},
}


@pytest.mark.parametrize("document", [pytest.param(SLICE, id="a slice"), pytest.param(QUOTA, id="a quota")])
def test_what_is_written_back_is_kept_whole(document: Document) -> None:
    view = decode(msgspec.json.encode(document))
    assert isinstance(view, ObjectWithRaw)
    assert msgspec.json.decode(view.raw) == document


def test_a_slice_without_ports_has_none() -> None:
    view = decode(msgspec.json.encode(SLICE))
    assert isinstance(view, EndpointSlice)
    assert view.ports == ()
    assert (view.endpoints[0].conditions.ready, view.endpoints[0].conditions.serving) == (False, None)


def test_a_quota_names_its_scopes() -> None:
    view = decode(msgspec.json.encode(QUOTA))
    assert isinstance(view, ResourceQuota)
    assert view.spec.scope_selector is not None
    assert view.spec.scope_selector.match_expressions[0].scope_name == "Terminating"


def test_a_role_keeps_its_rules_as_they_are_written() -> None:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    document = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    view = decode(msgspec.json.encode({**document, "rules": [rule]}))
    assert isinstance(view, ClusterRole)
    assert [{name: [*values] for name, values in each.items()} for each in view.rules] == [rule]
