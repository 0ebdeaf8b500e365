"""Where a kubelet serves a log.

Comes in   a node and a pod as the API has them, which part of the log is wanted
Goes out   an address; or a `StatusError` in the words of kube-apiserver

 1. A node is looked for by its name first, then by its addresses: the order that kube-apiserver has unless it is told
    another (`--kubelet-preferred-address-types`).
 2. The parameters are in the order of their names, so that errors read as kube-apiserver's.
"""

from __future__ import annotations

from urllib.parse import urlencode

from mooring.api.document import Document
from mooring.apiserver.registry.pod_log import LogOptions
from mooring.apiserver.registry.refusals import plain_error

PREFERRED_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
DEFAULT_PORT = 10_250


def log_location(node: Document, pod: Document, container: str, options: LogOptions) -> str:
    """The address of the log of a container."""
    metadata = pod["metadata"]
    path = f"/containerLogs/{metadata['namespace']}/{metadata['name']}/{container}"
    query = urlencode(_parameters(options))
    return f"https://{_authority(node)}{path}{'?' if query else ''}{query}"


def _authority(node: Document) -> str:
    status = node.get("status") or {}
    addresses = status.get("addresses") or []
    found = {type: [each["address"] for each in addresses if each["type"] == type] for type in PREFERRED_ADDRESS_TYPES}
    preferred = [address for type in PREFERRED_ADDRESS_TYPES for address in found[type]]
    if not preferred:
        known = " ".join(f"{{{each['type']} {each['address']}}}" for each in addresses)
        raise plain_error(f"no preferred addresses found; known addresses: [{known}]")
    host = preferred[0]
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    port = endpoint.get("Port") or DEFAULT_PORT
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _parameters(options: LogOptions) -> list[tuple[str, str]]:
    asked = {
        "follow": "true" if options.follows else "",
        "limitBytes": _number(options.limit_bytes),
        "previous": "true" if options.is_previous else "",
        "sinceSeconds": _number(options.since_s),
        "sinceTime": options.since_time or "",
        "tailLines": _number(options.tail_lines),
        "timestamps": "true" if options.has_timestamps else "",
    }
    return [(name, value) for name, value in asked.items() if value]


def _number(value: int | None) -> str:
    return "" if value is None else str(value)
