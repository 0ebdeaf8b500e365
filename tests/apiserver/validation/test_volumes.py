"""What is wrong with volumes as such."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({"volumes": [{"name": "v"}]}, [], id="one without a source is an empty directory"),
        pytest.param(
            {"volumes": [{"name": "v"}, {"name": "v"}]},
            ['spec.volumes[1].name: Duplicate value: "v"'],
            id="two of one name",
        ),
        pytest.param({"volumes": [{"emptyDir": {}}]}, ["spec.volumes[0].name: Required value"], id="no name"),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
            id="two sources",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}, "cephfs": {"monitors": ["a"]}, "downwardAPI": {}}]},
            [
                "spec.volumes[0].cephFS: Forbidden: may not specify more than 1 volume type",
                "spec.volumes[0].downwarAPI: Forbidden: may not specify more than 1 volume type",
            ],
            id="three sources, two of them misspelt as the real server does",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "-1"}}]},
            [("spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity")],
            id="an empty directory of less than nothing",
        ),
        pytest.param(
            {
                "volumes": [
                    {
                        "name": "e",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "1Gi"}},
                                }
                            }
                        },
                    },
                    {"name": "q", "persistentVolumeClaim": {"claimName": "p-e"}},
                ]
            },
            [
                (
                    'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "p-e": must not '
                    "reference a PVC that gets created for an ephemeral volume"
                )
            ],
            id="a claim that the pod itself makes",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "image": {}}]},
            ["spec.volumes[0].image.reference: Required value"],
            id="an image without a name",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
