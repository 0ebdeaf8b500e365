"""Capacities warn of old labels of nodes."""

from __future__ import annotations

from mooring.api.kinds import CSI_STORAGE_CAPACITY
from tests.apiserver.core_documents import call, changed, created, document, strategy


def test_old_labels_are_warned_of() -> None:
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
