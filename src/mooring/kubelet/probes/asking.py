"""Asking: which way a probe wants its container asked.

Comes in   a probe of a container, and the address where it listens
Goes out   an answer; or a `ProbeFault`
"""

from __future__ import annotations

from mooring.api.views.base import IntOrString
from mooring.kubelet.full_views import WholeContainer, WholePod, WholeProbe
from mooring.kubelet.probes.commands import CommandRunner, ask_command
from mooring.kubelet.probes.grpc import ask_grpc
from mooring.kubelet.probes.handlers import Answer, ProbeFault
from mooring.kubelet.probes.http import ask_http
from mooring.kubelet.probes.sockets import ask_socket


class ProbeAsker:
    """Asks real containers."""

    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner

    async def ask(self, pod: WholePod, container: WholeContainer, probe: WholeProbe, pod_ip: str) -> Answer:
        """Raises `ProbeFault`."""
        timeout_s = float(probe.timeout_seconds)
        if probe.exec is not None:
            return await ask_command(self._runner, pod.metadata.uid, container, probe.exec, timeout_s)
        if probe.http_get is not None:
            return await ask_http(probe.http_get, pod_ip, port_number(probe.http_get.port, container), timeout_s)
        if probe.tcp_socket is not None:
            port = port_number(probe.tcp_socket.port, container)
            return await ask_socket(probe.tcp_socket.host or pod_ip, port, timeout_s)
        if probe.grpc is not None:
            return await ask_grpc(pod_ip, probe.grpc.port, probe.grpc.service, timeout_s)
        metadata = pod.metadata
        who = f"{metadata.name}_{metadata.namespace}({metadata.uid}):{container.name}"
        raise ProbeFault(f"missing probe handler for {who}")


def port_number(port: IntOrString, container: WholeContainer) -> int:
    """A port by its number or by its name. Raises `ProbeFault`."""
    if isinstance(port, str):
        named = {own.name: own.container_port for own in container.ports if own.name}
        if port not in named and not port.isdecimal():
            raise ProbeFault(f'strconv.Atoi: parsing "{port}": invalid syntax')
        port = named[port] if port in named else int(port)
    if not 0 < port < 65536:
        raise ProbeFault(f"invalid port number: {port}")
    return port
