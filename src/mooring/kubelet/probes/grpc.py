"""gRPC's own health check.

Comes in   an address, a port and the name of a service
Goes out   an answer; only SERVING is a success
"""

from __future__ import annotations

from mooring.kubelet.probes.answers import Answer, ProbeFault


async def ask_grpc(host: str, port: int, service: str, timeout_s: float) -> Answer:
    """Raises `ProbeFault`."""
    raise ProbeFault("gRPC probes are not supported by this kubelet; use exec, httpGet or tcpSocket")
