"""Priority classes, created and changed."""

from __future__ import annotations

from tests.apiserver.workload_builders import body, created, updated


def test_its_generation_stays_the_first() -> None:
    old = created(body("PriorityClass")).obj
    obj = updated(body("PriorityClass", description="d"), old).obj
    assert (old["metadata"]["generation"], obj["metadata"]["generation"]) == (1, 1)


def test_finalizers_belong_to_somebody() -> None:
    assert created(body("PriorityClass", metadata__finalizers=["x", "a.b/c"])).faults == [
        'metadata.finalizers[0]: Invalid value: "x": '
        "name is neither a standard finalizer name nor is it fully qualified"
    ]
