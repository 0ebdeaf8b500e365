"""A lease: who holds something, and when he was last heard of.

Comes in   `coordination.k8s.io/v1` leases: the heartbeats of nodes, and of those who lead
Goes out   `Lease`
"""

from typing import ClassVar

from mooring.api.views.base import Timestamp, View
from mooring.api.views.meta import ApiObject


class LeaseSpec(View):
    holder_identity: str | None = None
    renew_time: Timestamp | None = None


class Lease(ApiObject):
    api_version: ClassVar[str] = "coordination.k8s.io/v1"
    kind: ClassVar[str] = "Lease"

    spec: LeaseSpec = LeaseSpec()
