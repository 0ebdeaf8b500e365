"""Who writes an empty list owns it; the store knows no such list."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.schema.tables import struct_named
from mooring.apiserver.wire.canonical import canonical, forget_empty_lists


@pytest.mark.parametrize(
    ("type_name", "raw", "stored"),
    [
        pytest.param("rbac.ClusterRole", {"rules": []}, {"metadata": {}, "rules": None}, id="an empty list is null"),
        pytest.param(
            "rbac.ClusterRole",
            {"rules": [{"verbs": []}]},
            {"metadata": {}, "rules": [{"verbs": None}]},
            id="also inside of others",
        ),
        pytest.param("core.ConfigMap", {"data": {"a": "b"}}, {"metadata": {}, "data": {"a": "b"}}, id="nothing to do"),
        pytest.param(
            "storage.CSINodeSpec",
            {"drivers": [{"name": "a", "nodeID": "b", "topologyKeys": []}]},
            {"drivers": [{"name": "a", "nodeID": "b", "topologyKeys": None}]},
            id="lists that are merged",
        ),
    ],
)
def test_empty_lists_are_null_once_they_are_stored(type_name: str, raw: Any, stored: Any) -> None:
    package, _, name = type_name.partition(".")
    struct = struct_named(package, name)
    document = canonical(struct, raw, [])
    forget_empty_lists(struct, document)
    assert document == stored
