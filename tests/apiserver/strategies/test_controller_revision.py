"""Controller revisions, created and changed."""

from __future__ import annotations

from tests.apiserver.workload_builders import body, created, updated


def test_only_the_number_can_be_changed() -> None:
    old = created(body("ControllerRevision")).obj
    assert updated(body("ControllerRevision", revision=2), old).faults == []
    assert updated(body("ControllerRevision", data={"b": 1}), old).faults == [
        'data: Invalid value: {"b":1}: field is immutable'
    ]
