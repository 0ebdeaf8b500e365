"""Clusters with something to see, for the tests of the console."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec

from tests.cluster.running import Up

PODS = "/api/v1/namespaces/default/pods"
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: i, resources: {requests: {cpu: "1"}, limits: {cpu: "1"}}}]
"""


def login_link(up: Up) -> str:
    """The link that `mooring up` prints."""
    return up.lines("/console/login")[-1].split()[-1]


def create_pod(up: Up, name: str, cpu: str, **spec: Any) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}
    assert up.ask("POST", PODS, body).code == 201


def create_deployment(up: Up, name: str, replicas: int, cpu: str) -> None:
    labels = {"app": name}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    assert up.ask("POST", "/apis/apps/v1/namespaces/default/deployments", body).code == 201


def decoded_nodes(body: bytes) -> dict[str, Any]:
    """The head of a table of nodes, and its columns by name."""
    start = 4 + int.from_bytes(body[:4], "little")
    head: dict[str, Any] = msgspec.json.decode(body[4:start])
    rows = head["rows"]
    assert len(body) == start + rows * len(head["columns"])
    parts = (body[start + place * rows :][:rows] for place in range(len(head["columns"])))
    return head | dict(zip(head["columns"], parts, strict=True))


def nodes(up: Up, **parameters: str) -> dict[str, Any]:
    """The table of all nodes; empty while the scheduler starts."""
    answer = up.ask("GET", f"/console/data/nodes?{urlencode(parameters)}")
    return decoded_nodes(answer.body) if answer.code == 200 else {}


def data(up: Up, path: str) -> Any:
    """The data of a page of the console; None while the scheduler starts."""
    answer = up.ask("GET", f"/console/data/{path}")
    return answer.document() if answer.code == 200 else None
