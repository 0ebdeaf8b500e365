"""Delete options are read and checked."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.registry.delete import DeleteOptions, checked_delete_options
from mooring.client.errors import InvalidError


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, (DeleteOptions(), False)),
        ({"gracePeriodSeconds": 0, "dryRun": ["All"]}, (DeleteOptions(grace_s=0), True)),
        ({"preconditions": {"uid": "u", "resourceVersion": "1"}}, (DeleteOptions(uid="u", revision="1"), False)),
        ({"propagationPolicy": "Orphan"}, (DeleteOptions(propagation="Orphan"), False)),
        ({"orphanDependents": True}, (DeleteOptions(orphans=True), False)),
    ],
    ids=["none", "at once, for a try", "which one", "leave what it owns", "the same, the old way"],
)
def test_read(document: Document, expected: tuple[DeleteOptions, bool]) -> None:
    assert checked_delete_options(document) == expected


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (
            {"orphanDependents": True, "propagationPolicy": "Orphan"},
            'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
        ),
        (
            {"propagationPolicy": "x"},
            'propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
        ({"dryRun": ["x"]}, 'dryRun: Unsupported value: ["x"]: supported values: "All"'),
    ],
    ids=["said twice", "no policy", "no dry run"],
)
def test_refused(document: Document, fault: str) -> None:
    with pytest.raises(InvalidError) as caught:
        checked_delete_options(document)
    assert caught.value.message == f'DeleteOptions.meta.k8s.io "" is invalid: {fault}'
