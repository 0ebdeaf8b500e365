"""What is unwise about the ports of a pod: two definitions of one port, two ports of one name.

Comes in   a pod's spec
Goes out   warnings
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.validation.containers_walk import every_container


def port_warnings(spec: Document, path: str) -> list[str]:
    """Warnings about clashes first, then about names."""
    ports = [
        (port, f"{here}.ports[{index}]")
        for container, here in every_container(spec, path)
        for index, port in enumerate(container.get("ports") or ())
    ]
    return _clash_warnings(ports) + _name_warnings(ports) if ports else []


def _clash_warnings(ports: list[tuple[Document, str]]) -> list[str]:
    warnings: list[str] = []
    known: dict[tuple[int, str], list[tuple[Document, str]]] = {}
    for port, path in ports:
        if port.get("hostIP") and not port.get("hostPort"):
            warnings.append(f"{path}: hostIP set without hostPort: {_printed(port)}")
        same = known.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
        for other, place in same:
            word = _clash(port, other)
            if word:
                warnings.append(f"{path}: {word} port definition with {place}")
        same.append((port, path))
    return warnings


def _clash(port: Document, other: Document) -> str:
    number, address = port.get("hostPort", 0), port.get("hostIP", "")
    other_number, other_address = other.get("hostPort", 0), other.get("hostIP", "")
    if (number, address) == (other_number, other_address):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    is_one_everywhere = (not address) != (not other_address)
    return "dangerously ambiguous" if number == other_number and is_one_everywhere else ""


def _name_warnings(ports: list[tuple[Document, str]]) -> list[str]:
    warnings: list[str] = []
    first: dict[str, str] = {}
    for port, path in ports:
        name = port.get("name")
        if not name:
            continue
        if name in first:
            advice = f"services and probes that select ports by name will use {first[name]}"
            warnings.append(f"{path}: duplicate port name {quoted(name)} with {first[name]}, {advice}")
        else:
            first[name] = path
    return warnings


def _printed(port: Document) -> str:
    """A port as Go prints the struct."""
    numbers = f"HostPort:{port.get('hostPort', 0)} ContainerPort:{port.get('containerPort', 0)}"
    rest = f"Protocol:{port.get('protocol', '')} HostIP:{port.get('hostIP', '')}"
    return f"{{Name:{port.get('name', '')} {numbers} {rest}}}"
