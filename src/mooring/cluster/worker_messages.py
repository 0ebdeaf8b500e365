"""Messages to the worker process over the control socket, and its exit codes.

First the start message, after its length. Later `STOP`.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from mooring.cluster.settings import ControlPlaneSettings

STOP = b"s"
EXIT_INVALID_SETTINGS = 3
EXIT_ABANDONED = 4
"""The first process is gone."""
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class StartMessage:
    """Everything that the worker needs to know."""

    settings: ControlPlaneSettings
    seed: int
    entropy_name: str
    log_level: int
    socket_path: str
    """The socket of the API server."""
    pages_path: str
    """The socket on which the worker serves the pages of its components."""
    tokens: Mapping[str, str] = field(repr=False)
    """The token of each component that runs in the worker."""
    module_path: tuple[str, ...] = ()
    """Where the first process finds modules: the worker looks for plugins there, too."""

    def framed(self) -> bytes:
        pickled = pickle.dumps(self)
        return len(pickled).to_bytes(_LENGTH_BYTES, "big") + pickled


def receive_start(control: socket.socket) -> StartMessage | None:
    """The start message; None if the first process has stopped meanwhile."""
    length = control.recv(_LENGTH_BYTES, socket.MSG_WAITALL)
    if len(length) < _LENGTH_BYTES:
        return None
    size = int.from_bytes(length, "big")
    pickled = control.recv(size, socket.MSG_WAITALL)
    if len(pickled) < size:
        return None
    message = pickle.loads(pickled)
    assert isinstance(message, StartMessage), f"{message!r} is not a start message"
    return message
