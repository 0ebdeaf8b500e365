"""Images on nodes: one size for each name, and who holds it."""

from __future__ import annotations

from mooring.api.views.node import ContainerImage
from mooring.scheduler.cache.images import ImageColumns


def image(size: int, *names: str) -> ContainerImage:
    return ContainerImage(names=names, size_bytes=size)


def held(images: ImageColumns) -> dict[str, tuple[int, list[int]]]:
    return {name: (holders.size_bytes, sorted(holders.rows)) for name, holders in images.holders.items()}


def test_an_image_is_known_by_all_its_names() -> None:
    images = ImageColumns()
    images.set(3, [image(10, "web:1", "web@sha256:abc"), image(20, "db:1")])
    assert held(images) == {"web:1": (10, [3]), "web@sha256:abc": (10, [3]), "db:1": (20, [3])}


def test_the_first_node_that_reports_an_image_says_its_size() -> None:
    images = ImageColumns()
    images.set(0, [image(10, "web:1")])
    images.set(1, [image(99, "web:1")])
    assert held(images) == {"web:1": (10, [0, 1])}
    images.clear(0)
    assert held(images) == {"web:1": (10, [1])}, "while any node holds it"
    images.clear(1)
    images.set(2, [image(99, "web:1")])
    assert held(images) == {"web:1": (99, [2])}


def test_a_node_that_drops_an_image_holds_it_no_longer() -> None:
    images = ImageColumns()
    images.set(0, [image(10, "web:1"), image(20, "db:1")])
    images.set(0, [image(20, "db:1")])
    assert held(images) == {"db:1": (20, [0])}


def test_the_version_changes_with_the_holders_only() -> None:
    images = ImageColumns()
    images.set(0, [])
    images.clear(0)
    assert images.version == 0
    images.set(0, [image(10, "web:1")])
    known = images.version
    images.set(0, [image(10, "web:1")])
    assert images.version == known, "most updates of a node are heartbeats"
    images.set(1, [image(10, "web:1")])
    assert images.version > known
    known = images.version
    images.clear(1)
    assert images.version > known
