"""Custom kinds: keeps the table of resources as the definitions in the store say.

Comes in   definitions, as they come, change and go (`followers`)
Goes out   resources, added to the `ResourceTable` and taken out of it

 1. Nothing is rebuilt for a change that nobody can see, such as the time of a condition.
"""

from __future__ import annotations

import logging

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.custom.conditions import is_served, is_true
from mooring.apiserver.resources import Resource, ResourceTable

log = logging.getLogger(__name__)


class CustomKinds:
    """Follows the definitions."""

    def __init__(self, resources: ResourceTable) -> None:
        self._resources = resources
        self._served: dict[str, list[Resource]] = {}
        self._seen: dict[str, object] = {}

    def put(self, kind: Kind, document: Document) -> None:
        name = document["metadata"]["name"]
        visible = _visible(document)
        if self._seen.get(name) == visible:
            return
        self._seen[name] = visible
        self._take_out(name)
        from mooring.apiserver.custom.serving import resources_of  # brings CEL: only for those who define kinds

        try:
            found = resources_of(document)
        except Exception:
            # A definition that was valid once and cannot be read now must not stop the others.
            log.exception("the kind that %s defines cannot be served", name)
            return
        for resource in found:
            self._resources.add(resource)
        if found:
            self._served[name] = found

    def remove(self, kind: Kind, document: Document) -> None:
        name = document["metadata"]["name"]
        self._seen.pop(name, None)
        self._take_out(name)

    def _take_out(self, name: str) -> None:
        for resource in self._served.pop(name, []):
            self._resources.remove(resource)


def _visible(document: Document) -> object:
    return (
        document["metadata"].get("uid"),
        document["spec"],
        (document.get("status") or {}).get("acceptedNames"),
        is_served(document),
        is_true(document, "Terminating"),
    )
