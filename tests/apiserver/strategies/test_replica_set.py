"""Replica sets, created and changed."""

from __future__ import annotations

from tests.apiserver.workload_builders import body, changed, created, updated


def test_a_new_one_has_counted_nothing() -> None:
    obj = created(body("ReplicaSet", status={"replicas": 3})).obj
    assert obj["status"] == {"replicas": 0}
    assert obj["spec"]["replicas"] == 1


def test_annotations_do_not_count_but_the_spec_does() -> None:
    old = created(body("ReplicaSet")).obj
    assert updated(body("ReplicaSet", metadata__annotations={"a": "b"}), old).obj["metadata"]["generation"] == 1
    assert updated(body("ReplicaSet", spec__replicas=2), old).obj["metadata"]["generation"] == 2


def test_a_status_update_keeps_the_spec_and_takes_labels() -> None:
    old = created(body("ReplicaSet")).obj
    raw = {**changed(old, status={"replicas": 1}, spec__replicas=9, metadata__labels={"a": "b"}), "kind": "ReplicaSet"}
    obj = updated({**raw, "apiVersion": "apps/v1"}, old, "status").obj
    assert obj["spec"]["replicas"] == 1
    assert obj["metadata"]["labels"] == {"a": "b"}
