"""What is wrong with projected volumes."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {
                "serviceAccountName": "s",
                "volumes": [
                    {
                        "name": "v",
                        "projected": {"sources": [{"secret": {"name": "a"}}, {"serviceAccountToken": {"path": "t"}}]},
                    }
                ],
            },
            [],
            id="a sound one",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            [
                (
                    "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be "
                    "specified when serviceAccountName is not set"
                )
            ],
            id="a token without an account",
        ),
        pytest.param(
            {
                "volumes": [
                    {
                        "name": "v",
                        "projected": {
                            "sources": [
                                {"secret": {"name": "a", "items": [{"key": "k", "path": "p"}]}},
                                {"configMap": {"name": "b", "items": [{"key": "k", "path": "p"}]}},
                            ]
                        },
                    }
                ]
            },
            ['spec.volumes[0].projected: Invalid value: "b": conflicting duplicate paths'],
            id="two files at one path",
        ),
        pytest.param(
            {
                "volumes": [
                    {"name": "v", "projected": {"sources": [{"secret": {"name": "x"}, "configMap": {"name": "y"}}]}}
                ]
            },
            [("spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source")],
            id="two sources in one",
        ),
        pytest.param(
            {
                "serviceAccountName": "s",
                "volumes": [
                    {
                        "name": "v",
                        "projected": {
                            "sources": [
                                {"serviceAccountToken": {"path": "", "expirationSeconds": 10}},
                                {"serviceAccountToken": {"path": "/x", "expirationSeconds": 4294967297}},
                            ]
                        },
                    }
                ],
            },
            [
                (
                    "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid "
                    "value: 10: may not specify a duration less than 10 minutes"
                ),
                "spec.volumes[0].projected.path: Required value",
                (
                    "spec.volumes[0].projected.sources[1].serviceAccountToken.expirationSeconds: Invalid "
                    "value: 4294967297: may not specify a duration larger than 2^32 seconds"
                ),
                'spec.volumes[0].projected.path: Invalid value: "/x": must be a relative path',
            ],
            id="tokens for too short and too long",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
