"""Every special kind of the table can be made, with its doors, and judges changes of metadata like others."""

from __future__ import annotations

import pytest

from mooring.api.kinds import (
    CONFIG_MAP,
    ENDPOINTS,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
)
from mooring.apiserver.strategies.table_core import STRATEGIES
from tests.apiserver.core_documents import changed, document


def test_every_strategy_can_be_made() -> None:
    for kind, made in STRATEGIES.items():
        found = made(kind)
        assert found.kind is kind
        assert ("status" in found.subresources) is kind.has_status
    assert set(STRATEGIES[NAMESPACE](NAMESPACE).subresources) == {"status", "finalize"}


@pytest.mark.parametrize(
    "kind",
    [CONFIG_MAP, ENDPOINTS, NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, SECRET, SERVICE_ACCOUNT],
    ids=str,
)
def test_an_odd_finalizer_is_refused_in_a_change_too(kind: Kind) -> None:
    old = document(kind, spec={}) if kind in (PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, NODE) else document(kind)
    faults, _ = changed(kind, old, metadata={**old["metadata"], "finalizers": ["odd"]})
    expected = "name is neither a standard finalizer name nor is it fully qualified"
    assert f'metadata.finalizers[0]: Invalid value: "odd": {expected}' in faults
