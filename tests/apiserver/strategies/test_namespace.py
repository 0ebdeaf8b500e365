"""A namespace begins active and with its finalizer, and each of its doors changes its own part."""

from __future__ import annotations

from mooring.api.kinds import NAMESPACE
from tests.apiserver.core_documents import changed, created, document, strategy


def test_a_new_namespace_is_active_and_held_by_kubernetes() -> None:
    namespace = document(NAMESPACE, spec={"finalizers": ["a.b/c"]}, status={"phase": "Terminating"})
    assert created(NAMESPACE, namespace) == []
    assert namespace["spec"] == {"finalizers": ["a.b/c", "kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}


def test_names_are_labels() -> None:
    assert created(NAMESPACE, document(NAMESPACE, {"name": "a.b"})) == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]


def test_only_finalize_changes_finalizers_and_only_status_the_status() -> None:
    old = document(NAMESPACE, spec={"finalizers": ["kubernetes"]})
    parts = {"spec": {}, "status": {"phase": "Active", "conditions": [{"type": "a", "status": "True"}]}}
    outcomes = {door: changed(NAMESPACE, old, door, **parts) for door in ("", "status", "finalize")}
    assert all(faults == [] for faults, _ in outcomes.values())
    assert outcomes[""][1]["spec"] == old["spec"]
    assert outcomes[""][1]["status"] == old["status"]
    assert outcomes["status"][1]["spec"] == old["spec"]
    assert outcomes["status"][1]["status"]["conditions"]
    assert outcomes["finalize"][1]["spec"] == {}
    assert outcomes["finalize"][1]["status"] == old["status"]


def test_a_generated_name_becomes_a_label_at_last() -> None:
    namespace = document(NAMESPACE, {"name": "", "generateName": "web-"})
    namespace["metadata"]["name"] = "web-x"
    for door in ("", "status", "finalize"):
        namespace["metadata"].pop("labels", None)
        strategy(NAMESPACE, door).canonicalize(namespace)
        assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "web-x"}


def test_namespaces_are_selected_by_phase() -> None:
    assert strategy(NAMESPACE).selectable_fields(document(NAMESPACE)) == {"status.phase": "Active"}
    assert strategy(NAMESPACE, "finalize").ignored_fields == (("status",),)
    assert strategy(NAMESPACE, "status").ignored_fields == (("spec",),)
