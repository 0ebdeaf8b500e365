"""Loopback clients of the components that run in the process of the API server."""

from __future__ import annotations

from mooring.apiserver.access.users import User
from mooring.apiserver.desk import Desk
from mooring.apiserver.loopback import LoopbackClient


def component_client(desk: Desk, name: str) -> LoopbackClient:
    """The client of a component, under the name that it has in Kubernetes."""
    return LoopbackClient(desk, User(f"system:{name}", groups=("system:authenticated", "system:masters")), name)
