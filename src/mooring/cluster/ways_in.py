"""Ways in: how the parts of Mooring that share the API server's process reach it.

Comes in   a desk, and the name that the part has in Kubernetes
Goes out   a client that writes under this name
"""

from __future__ import annotations

from mooring.apiserver.access.users import User
from mooring.apiserver.desk import Desk
from mooring.apiserver.loopback import LoopbackClient
from mooring.client.local import LocalClient
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy


def component_client(desk: Desk, clock: Clock, entropy: Entropy, name: str) -> LoopbackClient:
    """A way in for a component of this process, under the name that it has in Kubernetes."""
    user = User(f"system:{name}", groups=("system:authenticated", "system:masters"))
    return LoopbackClient(desk, LocalClient(desk.store, clock, entropy), user, name)
