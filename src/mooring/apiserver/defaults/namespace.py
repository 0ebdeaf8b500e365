"""Defaults of namespaces: the label with their name, so that selectors can pick one namespace."""

from __future__ import annotations

from mooring.api.document import Document

NAME_LABEL = "kubernetes.io/metadata.name"


def default_namespace(namespace: Document) -> None:
    metadata = namespace["metadata"]
    name = metadata.get("name")
    if name:
        metadata.setdefault("labels", {})[NAME_LABEL] = name
    namespace["status"].setdefault("phase", "Active")
