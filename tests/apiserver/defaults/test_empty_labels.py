"""Empty labels are remembered, but not kept."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.defaults.empty_labels import WithEmptyLabels, note_empty_labels


@pytest.mark.parametrize(
    ("template", "is_noted"),
    [
        pytest.param({}, False, id="no metadata"),
        pytest.param({"metadata": {"name": "x"}}, False, id="no labels"),
        pytest.param({"metadata": {"name": "x", "labels": {}}}, True, id="empty labels"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, False, id="labels"),
    ],
)
def test_noting(template: Document, is_noted: bool) -> None:
    note_empty_labels(template)
    metadata = template.get("metadata")
    assert isinstance(metadata, WithEmptyLabels) is is_noted
    if is_noted:
        assert metadata == {"name": "x"}
