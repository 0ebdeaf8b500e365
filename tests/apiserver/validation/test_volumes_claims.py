"""What is wrong with the claim of an ephemeral volume."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {"volumes": [{"name": "v", "ephemeral": {}}]},
            ["spec.volumes[0].ephemeral.volumeClaimTemplate: Required value"],
            id="no template",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
            [
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at "
                    "least 1 access mode is required"
                ),
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
            ],
            id="an empty template",
        ),
        pytest.param(
            {
                "volumes": [
                    {
                        "name": "v",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "metadata": {"name": "x", "uid": "u", "labels": {"a": "b"}},
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "1Gi"}},
                                },
                            }
                        },
                    }
                ]
            },
            [
                "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
                "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set",
            ],
            id="metadata that becomes nothing",
        ),
        pytest.param(
            {
                "volumes": [
                    {
                        "name": "v",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "spec": {
                                    "accessModes": ["X", "ReadWriteOncePod", "ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "0"}},
                                    "volumeMode": "Q",
                                    "storageClassName": "A_",
                                    "dataSource": {"kind": "X"},
                                }
                            }
                        },
                    }
                ]
            },
            [
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "
                    '"X": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", '
                    '"ReadWriteOncePod"'
                ),
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Forbidden: may not "
                    "use ReadWriteOncePod with other access modes"
                ),
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Invalid value: "
                    '"0": must be greater than zero'
                ),
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName: Invalid value: "
                    '"A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
                    "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeMode: Unsupported value: "
                    '"Q": supported values: "Block", "Filesystem"'
                ),
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource.name: Required value",
                (
                    'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource: Invalid value: "X": '
                    "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
                ),
            ],
            id="everything wrong",
        ),
        pytest.param(
            {
                "volumes": [
                    {
                        "name": "v",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "1Gi"}},
                                    "dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
                                    "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "b"},
                                }
                            }
                        },
                    }
                ]
            },
            [("spec.volumes[0].ephemeral.volumeClaimTemplate.spec: Invalid value: {}: must match dataSourceRef")],
            id="two sources of data that differ",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
