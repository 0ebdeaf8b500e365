"""Builders of services and of pods that they select."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Service

HTTP: Document = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}


def service(name: str = "web", *, ports: list[Document] | None = None, **spec: Any) -> Document:
    """With the defaults that an API server would fill in."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"team": "x"}},
        "spec": {
            "selector": {"app": "web"},
            "type": "ClusterIP",
            "clusterIP": "10.96.0.10",
            "ipFamilies": ["IPv4"],
            "ports": [HTTP] if ports is None else ports,
            **spec,
        },
    }


def backend(
    name: str,
    address: str = "10.1.0.1",
    *,
    is_ready: bool = True,
    phase: str = "Running",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Document:
    condition = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"} if labels is None else labels},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "a"}], **spec},
        "status": {"phase": phase, "podIPs": [{"ip": address}] if address else [], "conditions": [condition]},
    }


def node(name: str = "n1", zone: str = "z1") -> Document:
    labels = {"topology.kubernetes.io/zone": zone}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def service_view(name: str = "web", **parts: Any) -> Service:
    document = service(name, **parts)
    document["metadata"] |= {"namespace": "default", "uid": f"uid-{name}"}
    return decode_as(Service, msgspec.json.encode(document))


def backend_view(name: str, address: str = "10.1.0.1", *, going: bool = False, **parts: Any) -> Pod:
    document = backend(name, address, **parts)
    document["metadata"]["uid"] = f"uid-{name}"
    if going:
        document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return decode_as(Pod, msgspec.json.encode(document))
