"""What a way of writing ignores."""

from __future__ import annotations

import pytest

from mooring.apiserver.apply.filters import Ignored, kept
from tests.apiserver.apply.builders import fields, shown


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        pytest.param((), [".metadata.labels", ".spec.nodeName", ".status.phase"], id="nothing"),
        pytest.param((("status",),), [".metadata.labels", ".spec.nodeName"], id="a branch"),
        pytest.param((("spec",), ("metadata", "labels")), [".status.phase"], id="two branches"),
        pytest.param((("other",),), [".metadata.labels", ".spec.nodeName", ".status.phase"], id="what is not there"),
    ],
)
def test_is_left_out(ignored: Ignored, left: list[str]) -> None:
    assert shown(kept(fields("metadata labels", "spec nodeName", "status phase"), ignored)) == left
