"""What is wrong with volumes of files from objects."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {"volumes": [{"name": "v", "secret": {}}]},
            ["spec.volumes[0].secret.secretName: Required value"],
            id="a secret without a name",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "configMap": {}}]},
            ["spec.volumes[0].configMap.name: Required value"],
            id="a config map without a name",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 1000}}]},
            [
                (
                    "spec.volumes[0].secret.defaultMode: Invalid value: 1000: must be a number between 0 "
                    "and 0777 (octal), both inclusive"
                )
            ],
            id="a mode that cannot be",
        ),
        pytest.param(
            {
                "volumes": [
                    {
                        "name": "v",
                        "configMap": {
                            "name": "c",
                            "items": [
                                {"key": "", "path": ""},
                                {"key": "a", "path": "/x"},
                                {"key": "b", "path": "..x", "mode": -1},
                            ],
                        },
                    }
                ]
            },
            [
                "spec.volumes[0].configMap.items[0].key: Required value",
                "spec.volumes[0].configMap.items[0].path: Required value",
                'spec.volumes[0].configMap.items[1].path: Invalid value: "/x": must be a relative path',
                ("spec.volumes[0].configMap.items[2].path: Invalid value: \"..x\": must not start with '..'"),
                (
                    "spec.volumes[0].configMap.items[2].mode: Invalid value: -1: must be a number between "
                    "0 and 0777 (octal), both inclusive"
                ),
            ],
            id="bad keys",
        ),
        pytest.param(
            {
                "volumes": [
                    {
                        "name": "v",
                        "downwardAPI": {
                            "items": [
                                {"path": "a", "fieldRef": {"fieldPath": "spec.nodeName"}},
                                {"path": "b", "resourceFieldRef": {"resource": "limits.cpu"}},
                                {"path": "c"},
                            ]
                        },
                    }
                ]
            },
            [
                (
                    'spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": '
                    'supported values: "metadata.annotations", "metadata.labels", "metadata.name", '
                    '"metadata.namespace", "metadata.uid"'
                ),
                "spec.volumes[0].downwardAPI.resourceFieldRef.containerName: Required value",
                ("spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"),
            ],
            id="bad files of fields",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
