"""Loopback clients of the components that run in the process of the API server."""

from __future__ import annotations

from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.serving.users import User


def component_user(name: str) -> User:
    """The user of a component, under the name that it has in Kubernetes."""
    return User(f"system:{name}", groups=("system:authenticated", "system:masters"))


def component_client(api_server: ApiServer, name: str) -> LoopbackClient:
    return LoopbackClient(api_server, component_user(name), name)
