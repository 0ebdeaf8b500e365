"""Tests of kinds.csi_storage_capacity."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import CSI_STORAGE_CAPACITY
from mooring.apiserver.kinds.csi_storage_capacity import (
    has_bad_selector,
    validate_storage_capacity,
    validate_storage_capacity_update,
)
from tests.apiserver.core_documents import call, changed, created, document, messages, strategy

INVALID_LABEL_VALUE = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}


@pytest.mark.parametrize(
    ("parts", "fields"),
    [
        pytest.param({"capacity": "0", "maximumVolumeSize": "-5Gi"}, [], id="a negative maximumVolumeSize"),
        pytest.param({"storageClassName": ""}, ["storageClassName"], id="no storage class"),
        pytest.param({"capacity": "-1"}, ["capacity"], id="a negative capacity"),
        pytest.param(
            {"nodeTopology": INVALID_LABEL_VALUE},
            ["nodeTopology.matchExpressions[0].values[0]"],
            id="an invalid label value",
        ),
    ],
)
def test_storage_capacities_are_validated(parts: dict[str, Any], fields: list[str]) -> None:
    assert [error.field for error in validate_storage_capacity({"storageClassName": "fast", **parts})] == fields


def test_invalid_label_values_can_be_tolerated() -> None:
    old = {"storageClassName": "fast", "nodeTopology": INVALID_LABEL_VALUE}
    assert has_bad_selector(old)
    assert validate_storage_capacity(old, tolerates_values=True) == []


def test_immutable_fields_of_storage_capacities() -> None:
    old = {"storageClassName": "fast", "capacity": "1"}
    assert validate_storage_capacity_update({**old, "capacity": "2"}, old) == []
    changed = {"storageClassName": "slow", "nodeTopology": {"matchLabels": {"b": "1", "a": "2"}}}
    assert messages(validate_storage_capacity_update(changed, old)) == [
        'nodeTopology: Invalid value: {"matchLabels":{"a":"2","b":"1"}}: field is immutable',
        'storageClassName: Invalid value: "slow": field is immutable',
    ]


def test_deprecated_labels_have_a_warning() -> None:
    topology = {
        "matchExpressions": [{"key": "beta.kubernetes.io/arch", "operator": "Exists"}],
        "matchLabels": {"beta.kubernetes.io/os": "linux"},
    }
    made = document(CSI_STORAGE_CAPACITY, storageClassName="fast", nodeTopology=topology)
    assert created(CSI_STORAGE_CAPACITY, made) == []
    assert strategy(CSI_STORAGE_CAPACITY).warnings_on_create(made, call(CSI_STORAGE_CAPACITY)) == [
        "nodeTopology.matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; "
        'use "kubernetes.io/arch" instead',
        'nodeTopology.matchLabels.beta.kubernetes.io/os: deprecated since v1.14; use "kubernetes.io/os" instead',
    ]
    assert changed(CSI_STORAGE_CAPACITY, made, capacity="1Gi")[0] == []
    assert changed(CSI_STORAGE_CAPACITY, made, storageClassName="slow")[0] == [
        'storageClassName: Invalid value: "slow": field is immutable'
    ]
