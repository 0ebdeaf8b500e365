"""Namespaces are held by finalizers that somebody is responsible for, and their phase follows their deletion."""

from __future__ import annotations

import pytest

from mooring.api.kinds import NAMESPACE
from mooring.apiserver.validation.namespace import (
    namespace_faults,
    namespace_finalize_faults,
    namespace_status_faults,
)
from tests.apiserver.core_documents import document
from tests.apiserver.field_errors import messages

UNKNOWN = 'Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified'


@pytest.mark.parametrize(
    ("finalizers", "faults"),
    [
        pytest.param([], [], id="none is needed"),
        pytest.param(["kubernetes", "orphan", "foregroundDeletion", "a.b/c"], [], id="known and qualified ones"),
        pytest.param(["x"], [UNKNOWN], id="a plain name must be a known one"),
    ],
)
def test_finalizers_are_known_or_qualified(finalizers: list[str], faults: list[str]) -> None:
    namespace = document(NAMESPACE, spec={"finalizers": finalizers})
    assert messages(namespace_faults(namespace)) == [f"spec.finalizers: {fault}" for fault in faults]
    assert messages(namespace_finalize_faults(namespace)) == [f"spec.finalizers[0]: {fault}" for fault in faults]


@pytest.mark.parametrize(
    ("metadata", "phase", "detail"),
    [
        pytest.param({}, "Active", "", id="it lives"),
        pytest.param({}, "Terminating", "may only be 'Active' if `deletionTimestamp` is empty", id="it lives, truly"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "Terminating", "", id="it ends"),
        pytest.param(
            {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "Active",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
            id="it ends, truly",
        ),
    ],
)
def test_the_phase_follows_the_deletion(metadata: dict[str, str], phase: str, detail: str) -> None:
    namespace = document(NAMESPACE, metadata, status={"phase": phase})
    wanted = [f'status.Phase: Invalid value: "{phase}": {detail}'] if detail else []
    assert messages(namespace_status_faults(namespace)) == wanted
