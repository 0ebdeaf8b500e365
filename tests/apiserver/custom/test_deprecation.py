"""Deprecated versions warn of themselves."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.deprecation import deprecation_warning
from tests.apiserver.custom.definitions import definition, version

OLD = version(name="v1beta1", deprecated=True)


@pytest.mark.parametrize(
    ("others", "entry", "text"),
    [
        pytest.param([], OLD, "example.com/v1beta1 Widget is deprecated", id="nothing better"),
        pytest.param([version(name="v1alpha1")], OLD, "example.com/v1beta1 Widget is deprecated", id="nothing newer"),
        pytest.param(
            [version(name="v2")], OLD, "example.com/v1beta1 Widget is deprecated; use example.com/v2 Widget", id="newer"
        ),
        pytest.param([], {**OLD, "deprecationWarning": "go away"}, "go away", id="its own words"),
    ],
)
def test_warnings(others: list[Document], entry: Document, text: str) -> None:
    assert deprecation_warning(definition(entry, *others)["spec"], entry) == text
