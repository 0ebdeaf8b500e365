"""Builders of CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document

GROUP = "example.com"


def fields(**properties: Document) -> Document:
    """The schema of an object with these fields."""
    return {"type": "object", "properties": properties}


def ruled(schema: Document, *rules: str | Document) -> Document:
    """A schema with CEL rules."""
    return {**schema, "x-kubernetes-validations": [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def version(schema: Document | None = None, name: str = "v1", **rest: Any) -> Document:
    """An entry of `spec.versions`; the first one is stored."""
    entry: Document = {"name": name, "served": True, "storage": name == "v1"}
    return entry | {"schema": {"openAPIV3Schema": schema or {"type": "object"}}} | rest


def definition(*versions: Document, scope: str = "Namespaced", accepted: bool = True, **spec: Any) -> Document:
    """A definition of widgets, canonical and defaulted."""
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    conditions: list[Document] = [
        {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Established", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
    status: Document = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}
    if accepted:
        status |= {"conditions": conditions, "acceptedNames": dict(names)}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": f"widgets.{GROUP}", "uid": "u", "generation": 1, "resourceVersion": "1"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": scope,
            "versions": list(versions) or [version()],
            "conversion": {"strategy": "None"},
            **spec,
        },
        "status": status,
    }


def widget(name: str = "a", **rest: Any) -> Document:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}, **rest}
