"""Images on nodes: for each image name, its size and the rows that have it.

Comes in   image lists of nodes
Goes out   for an image name, how large it is and which rows hold it

 1. An image's size is what the first node that reported it said, while any node holds it: kube-scheduler keeps one
    size for each name, and scores must agree to the unit.
 2. `version` changes with every change, because the score of an image on one node depends on how many hold it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.views.node import ContainerImage


class ImageHolders:
    """One image name: its size and the rows that hold it."""

    __slots__ = ("rows", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: dict[int, None] = {}


class ImageColumns:
    """All images, by name."""

    __slots__ = ("_images_of", "_names_of", "holders", "version")

    def __init__(self) -> None:
        self.holders: dict[str, ImageHolders] = {}
        self.version = 0
        self._names_of: dict[int, tuple[str, ...]] = {}
        self._images_of: dict[int, tuple[ContainerImage, ...]] = {}

    def set(self, row: int, images: Sequence[ContainerImage]) -> None:
        if self._images_of.get(row, ()) == tuple(images):
            return
        self.clear(row)
        names: dict[str, None] = {}
        for image in images:
            for name in image.names:
                holders = self.holders.get(name)
                if holders is None:
                    holders = self.holders[name] = ImageHolders(image.size_bytes)
                holders.rows[row] = None
                names[name] = None
        self._names_of[row] = tuple(names)
        self._images_of[row] = tuple(images)
        self.version += 1

    def clear(self, row: int) -> None:
        names = self._names_of.pop(row, ())
        self._images_of.pop(row, None)
        for name in names:
            holders = self.holders[name]
            del holders.rows[row]
            if not holders.rows:
                del self.holders[name]
        if names:
            self.version += 1
