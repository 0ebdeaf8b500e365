"""Bounds of containers imply defaults for containers, and for nobody else."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.defaults.limit_range import default_limit_range


@pytest.mark.parametrize(
    ("bounds", "defaults"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"max": {"cpu": "2"}}, {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}}, id="the most"),
        pytest.param({"min": {"cpu": "1"}}, {"defaultRequest": {"cpu": "1"}}, id="the least"),
        pytest.param(
            {"min": {"cpu": "1"}, "max": {"cpu": "3"}, "default": {"cpu": "2"}},
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}},
            id="a default limit is also requested",
        ),
    ],
)
def test_containers(bounds: Document, defaults: Document) -> None:
    limit_range: Document = {"spec": {"limits": [{"type": "Container", **bounds}, {"type": "Pod", **bounds}]}}
    default_limit_range(limit_range)
    default_limit_range(limit_range)
    assert limit_range["spec"]["limits"] == [{"type": "Container", **bounds, **defaults}, {"type": "Pod", **bounds}]


def test_amounts_are_rounded() -> None:
    limit_range: Document = {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "0.0001"}}]}}
    default_limit_range(limit_range)
    assert limit_range["spec"]["limits"][0]["max"] == {"cpu": "1m"}
