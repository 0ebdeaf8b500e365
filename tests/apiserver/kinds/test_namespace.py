"""Tests of kinds.namespace."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NAMESPACE
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.namespace import (
    validate_namespace,
    validate_namespace_finalize,
    validate_namespace_status,
)
from tests.apiserver.core_documents import changed, created, document, messages, strategy


def test_default_sets_the_name_label_and_the_active_phase() -> None:
    namespace: Document = {"metadata": {"name": "web", "labels": {"kubernetes.io/metadata.name": "x"}}, "status": {}}
    strategy_of(NAMESPACE).default(namespace)
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "web"}
    assert namespace["status"] == {"phase": "Active"}


def test_default_adds_no_name_label_before_a_name_is_generated() -> None:
    namespace: Document = {"metadata": {"generateName": "web-"}, "status": {"phase": "Terminating"}}
    strategy_of(NAMESPACE).default(namespace)
    assert namespace == {"metadata": {"generateName": "web-"}, "status": {"phase": "Terminating"}}


UNKNOWN = 'Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified'


@pytest.mark.parametrize(
    ("finalizers", "errors"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["kubernetes", "orphan", "foregroundDeletion", "a.b/c"], [], id="known and qualified ones"),
        pytest.param(["x"], [UNKNOWN], id="a plain name must be a known one"),
    ],
)
def test_finalizers_are_known_or_qualified(finalizers: list[str], errors: list[str]) -> None:
    namespace = document(NAMESPACE, spec={"finalizers": finalizers})
    assert messages(validate_namespace(namespace)) == [f"spec.finalizers: {error}" for error in errors]
    assert messages(validate_namespace_finalize(namespace)) == [f"spec.finalizers[0]: {error}" for error in errors]


@pytest.mark.parametrize(
    ("metadata", "phase", "detail"),
    [
        pytest.param({}, "Active", "", id="active"),
        pytest.param(
            {},
            "Terminating",
            "may only be 'Active' if `deletionTimestamp` is empty",
            id="terminating without a deletionTimestamp",
        ),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "Terminating", "", id="terminating"),
        pytest.param(
            {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "Active",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
            id="active with a deletionTimestamp",
        ),
    ],
)
def test_the_phase_must_match_the_deletion_timestamp(metadata: dict[str, str], phase: str, detail: str) -> None:
    namespace = document(NAMESPACE, metadata, status={"phase": phase})
    expected = [f'status.Phase: Invalid value: "{phase}": {detail}'] if detail else []
    assert messages(validate_namespace_status(namespace)) == expected


def test_a_new_namespace_is_active_and_has_the_kubernetes_finalizer() -> None:
    namespace = document(NAMESPACE, spec={"finalizers": ["a.b/c"]}, status={"phase": "Terminating"})
    assert created(NAMESPACE, namespace) == []
    assert namespace["spec"] == {"finalizers": ["a.b/c", "kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}


def test_names_of_namespaces_must_be_dns_labels() -> None:
    assert created(NAMESPACE, document(NAMESPACE, {"name": "a.b"})) == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]


def test_only_finalize_changes_finalizers_and_only_status_the_status() -> None:
    old = document(NAMESPACE, spec={"finalizers": ["kubernetes"]})
    parts = {"spec": {}, "status": {"phase": "Active", "conditions": [{"type": "a", "status": "True"}]}}
    outcomes = {handler: changed(NAMESPACE, old, handler, **parts) for handler in ("", "status", "finalize")}
    assert all(errors == [] for errors, _ in outcomes.values())
    assert outcomes[""][1]["spec"] == old["spec"]
    assert outcomes[""][1]["status"] == old["status"]
    assert outcomes["status"][1]["spec"] == old["spec"]
    assert outcomes["status"][1]["status"]["conditions"]
    assert outcomes["finalize"][1]["spec"] == {}
    assert outcomes["finalize"][1]["status"] == old["status"]


def test_canonicalize_sets_the_name_label_of_a_generated_name() -> None:
    namespace = document(NAMESPACE, {"name": "", "generateName": "web-"})
    namespace["metadata"]["name"] = "web-x"
    for handler in ("", "status", "finalize"):
        namespace["metadata"].pop("labels", None)
        strategy(NAMESPACE, handler).canonicalize(namespace)
        assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "web-x"}


def test_namespaces_are_selected_by_phase() -> None:
    assert strategy(NAMESPACE).selectable_fields(document(NAMESPACE)) == {"status.phase": "Active"}
    assert strategy(NAMESPACE, "finalize").ignored_fields == (("status",),)
    assert strategy(NAMESPACE, "status").ignored_fields == (("spec",),)
