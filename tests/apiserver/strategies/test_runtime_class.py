"""Runtime classes, created and changed."""

from __future__ import annotations

from tests.apiserver.workload_builders import body, created, updated


def test_old_labels_of_nodes_are_warned_of() -> None:
    raw = body("RuntimeClass", scheduling={"nodeSelector": {"beta.kubernetes.io/os": "linux"}})
    assert created(raw).warnings == ['scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead']


def test_an_update_is_judged_as_new_and_as_a_change() -> None:
    old = created(body("RuntimeClass")).obj
    assert updated(body("RuntimeClass", handler=""), old).faults == [
        "handler: Required value",
        'handler: Invalid value: "": field is immutable',
    ]
