"""Settings that cannot be meant are refused."""

from __future__ import annotations

import pytest

from mooring.kubelet.settings import FleetSettings


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"count": -1}, "a fleet of -1 nodes; wanted 0 or more"),
        ({"lease_s": 10, "lease_period_s": 10.0}, "wanted them renewed before they end"),
        ({"lease_period_s": 0.0}, "wanted them renewed before they end"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, float], complaint: str) -> None:
    with pytest.raises(ValueError) as caught:
        FleetSettings(**wrong)  # type: ignore[arg-type]
    assert complaint in str(caught.value)
