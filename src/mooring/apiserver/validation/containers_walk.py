"""Walking over the containers of a pod.

Comes in   a pod's spec and its path
Goes out   each container with its own path: init containers, ordinary ones, ephemeral ones
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.document import Document

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


def every_container(spec: Document, path: str) -> Iterator[tuple[Document, str]]:
    """All containers with their paths."""
    for kind in CONTAINER_LISTS:
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, f"{path}.{kind}[{index}]"
