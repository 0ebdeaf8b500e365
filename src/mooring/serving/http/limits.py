"""Limits of a connection: what anybody may ask of us, before we know who it is.

Each has a name, a default, and a behaviour when it is reached.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What a connection may do."""

    handshake_s_max: float = 10.0
    """For the TLS handshake. Beyond it the connection is closed."""
    handshakes_max: int = 1_000
    """Connections that have not completed the handshake. Beyond it the oldest of them is closed."""
    target_bytes_max: int = 16 * 1024
    """What is asked for, with its query. Answer beyond it: 431, and the connection is closed."""
    field_bytes_max: int = 64 * 1024
    """One field of a head. Answer beyond it: 431, and the connection is closed."""
    fields_max: int = 128
    """Fields of a head. Answer beyond it: 400, and the connection is closed."""
    body_ahead_bytes_max: int = 64 * 1024
    """Of a body that nobody has asked for yet. Beyond it nothing more is read from the connection."""
    requests_ahead_max: int = 8
    """Requests that wait for the answers before theirs. Beyond it nothing more is read from the connection."""
    idle_s_max: float = 75.0
    """Without a whole head since the last answer, or without taking any of it; for a body that somebody waits for.
    Beyond it the connection is closed."""
    linger_s_max: float = 1.0
    """For the rest of a body that nobody wanted. Beyond it the connection is closed."""
    look_s: float = 1.0
    """How often connections are looked at. The two limits before this one are kept to within twice as much."""
    stop_s_max: float = 5.0
    """For the requests in progress when the server stops. Beyond it they are cut off."""

    @property
    def head_bytes_max(self) -> int:
        """A head that has not come to its end by then will not be waited for."""
        return self.target_bytes_max + self.field_bytes_max
