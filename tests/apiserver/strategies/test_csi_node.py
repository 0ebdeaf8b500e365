"""CSINodes are only replaced by those who know them."""

from __future__ import annotations

from mooring.api.kinds import CSI_NODE
from tests.apiserver.core_documents import changed, created, document, strategy


def test_drivers_come_and_go() -> None:
    made = document(CSI_NODE, spec={"drivers": []})
    assert created(CSI_NODE, made) == []
    faults, new = changed(CSI_NODE, made, spec={"drivers": [{"name": "a", "nodeID": "b"}]})
    assert faults == []
    faults, _ = changed(CSI_NODE, new, spec={"drivers": [{"name": "a", "nodeID": "c"}]})
    assert [fault.partition(":")[0] for fault in faults] == ["spec.drivers"]
    assert not strategy(CSI_NODE).allows_unconditional_update
