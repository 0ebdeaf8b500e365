"""What is unwise about volumes."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.strategies.pod_warnings_volumes import overlap_warnings, volume_warnings


@pytest.mark.parametrize(
    ("source", "warnings"),
    [
        pytest.param({"emptyDir": {}}, [], id="one in use"),
        pytest.param(
            {"gitRepo": {}},
            ["v[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
            id="a repository",
        ),
        pytest.param(
            {"storageos": {}},
            ["v[0].storageOS: deprecated in v1.22, non-functional in v1.25+"],
            id="told in other letters",
        ),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1500m"}}}}}},
            [
                "v[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: "
                'fractional byte value "1500m" is invalid, must be an integer'
            ],
            id="a claim of half a byte",
        ),
    ],
)
def test_sources(source: Document, warnings: list[str]) -> None:
    assert volume_warnings([{"name": "x", **source}], "v") == warnings


@pytest.mark.parametrize(
    ("source", "warnings"),
    [
        pytest.param({"configMap": {"name": "c", "items": [{"path": "a"}, {"path": "ab"}]}}, [], id="two files"),
        pytest.param(
            {"configMap": {"name": "c", "items": [{"path": "a"}, {"path": "a/b"}]}},
            ['volume "x" (ConfigMap "c"): overlapping paths: "a/b" with "a"'],
            id="one below the other",
        ),
        pytest.param(
            {"secret": {"secretName": "s", "items": [{"path": "a/"}, {"path": "a"}]}},
            ['volume "x" (Secret "s"): overlapping paths: "a" with "a"'],
            id="one twice",
        ),
        pytest.param(
            {
                "projected": {
                    "sources": [
                        {"secret": {"name": "s", "items": [{"path": "t"}]}},
                        {"serviceAccountToken": {"path": "t"}},
                        {},
                    ]
                }
            },
            [
                'volume "x" (Projected): overlapping paths: "t" (ServiceAccountToken) with "t" (Secret "s")',
                'volume "x" (Projected) has no sources provided',
            ],
            id="two sources at one path, and one of nothing",
        ),
    ],
)
def test_overlaps(source: Document, warnings: list[str]) -> None:
    assert overlap_warnings([{"name": "x", **source}]) == warnings
