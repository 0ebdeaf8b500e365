"""Tests of kinds.pod.options."""

from __future__ import annotations

from dataclasses import fields

from mooring.apiserver.kinds.pod.options import STRICT, STRICT_POD, PodOptions, every_container


def test_a_new_object_is_tolerated_nothing() -> None:
    tolerances = [field.name for field in fields(PodOptions) if field.name.startswith("tolerates_")]
    assert not any(getattr(STRICT, name) or getattr(STRICT_POD, name) for name in tolerances)
    assert (STRICT.is_pod, STRICT_POD.is_pod) == (False, True)


def test_init_containers_come_first_and_ephemeral_ones_last() -> None:
    spec = {"containers": [{"name": "c"}], "ephemeralContainers": [{"name": "e"}], "initContainers": [{"name": "i"}]}
    assert [(container["name"], path) for container, path in every_container(spec, "s")] == [
        ("i", "s.initContainers[0]"),
        ("c", "s.containers[0]"),
        ("e", "s.ephemeralContainers[0]"),
    ]
