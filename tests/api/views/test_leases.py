"""The view of a lease."""

from __future__ import annotations

from mooring.api.decode import convert_as
from mooring.api.views.leases import Lease, LeaseSpec
from mooring.api.views.meta import ObjectMeta


def test_what_is_read_of_a_lease() -> None:
    written = {
        "metadata": {"name": "n1", "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": "n1", "renewTime": "2024-06-12T22:21:21.000001Z", "leaseDurationSeconds": 40},
    }
    assert convert_as(Lease, written) == Lease(
        metadata=ObjectMeta(name="n1", namespace="kube-node-lease"),
        spec=LeaseSpec(holder_identity="n1", renew_time="2024-06-12T22:21:21.000001Z"),
    )
