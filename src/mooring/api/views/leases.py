"""View of Leases: heartbeats of nodes, and leader election."""

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
