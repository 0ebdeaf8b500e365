"""Service variables: where the services are, told to containers by name.

Comes in   services, in the order in which they count: the last one of a name wins
Goes out   FOO_SERVICE_HOST, FOO_SERVICE_PORT, FOO_SERVICE_PORT_<PORT NAME>, and the links of old Docker

A service without an address of its own is told to nobody.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.views.workloads import Service

_NO_ADDRESS = ("", "None")


def service_variables(services: Iterable[Service]) -> dict[str, str]:
    """What a container is told of the services."""
    variables: dict[str, str] = {}
    for service in services:
        if service.spec.cluster_ip in _NO_ADDRESS or not service.spec.ports:
            continue
        prefix = _variable_name(service.metadata.name)
        variables[f"{prefix}_SERVICE_HOST"] = service.spec.cluster_ip
        variables[f"{prefix}_SERVICE_PORT"] = str(service.spec.ports[0].port)
        for port in service.spec.ports:
            if port.name:
                variables[f"{prefix}_SERVICE_PORT_{_variable_name(port.name)}"] = str(port.port)
        variables |= _links(service, prefix)
    return variables


def _links(service: Service, prefix: str) -> dict[str, str]:
    """As Docker told linked containers of each other; the first port also without its number."""
    variables: dict[str, str] = {}
    address = service.spec.cluster_ip
    host = f"[{address}]" if ":" in address else address
    for index, port in enumerate(service.spec.ports):
        protocol = port.protocol or "TCP"
        url = f"{protocol.lower()}://{host}:{port.port}"
        if index == 0:
            variables[f"{prefix}_PORT"] = url
        name = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
        variables[name] = url
        variables[f"{name}_PROTO"] = protocol.lower()
        variables[f"{name}_PORT"] = str(port.port)
        variables[f"{name}_ADDR"] = address
    return variables


def _variable_name(name: str) -> str:
    return name.replace("-", "_").upper()
