"""Defaults of ReplicationControllers.

Comes in   a controller as somebody wrote it
Goes out   the same; its template's labels are its selector and its own labels, if it has none
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.pod import default_pod_template


def default_replication_controller(controller: Document) -> None:
    spec: Document = controller["spec"]
    template = spec.get("template")
    if template is not None:
        labels = (template.get("metadata") or {}).get("labels")
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not controller["metadata"].get("labels"):
                controller["metadata"]["labels"] = dict(labels)
        default_pod_template(template)
    spec.setdefault("replicas", 1)
