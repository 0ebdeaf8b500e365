"""Walking over the containers of a pod."""

from __future__ import annotations

from mooring.apiserver.validation.containers_walk import every_container


def test_init_containers_come_first_and_ephemeral_ones_last() -> None:
    spec = {"containers": [{"name": "c"}], "ephemeralContainers": [{"name": "e"}], "initContainers": [{"name": "i"}]}
    assert [(container["name"], path) for container, path in every_container(spec, "s")] == [
        ("i", "s.initContainers[0]"),
        ("c", "s.containers[0]"),
        ("e", "s.ephemeralContainers[0]"),
    ]
