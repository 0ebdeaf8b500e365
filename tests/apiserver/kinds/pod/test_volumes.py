"""Tests of kinds.pod.volumes."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import errors_of, pod


@pytest.mark.parametrize(
    ("spec", "errors"),
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
            id="forbidden metadata",
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
def test_ephemeral_volumes_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
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
            id="an invalid mode",
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
            id="invalid keys",
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
            id="invalid downward API items",
        ),
    ],
)
def test_secret_config_map_and_downward_api_volumes_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
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
            id="valid",
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
            id="tokens with too short and too long expirations",
        ),
    ],
)
def test_projected_volumes_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({"volumes": [{"name": "v"}]}, [], id="one without a source is an empty directory"),
        pytest.param(
            {"volumes": [{"name": "v"}, {"name": "v"}]},
            ['spec.volumes[1].name: Duplicate value: "v"'],
            id="duplicate names",
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
            id="an emptyDir with a negative size",
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
            id="a claim of an ephemeral volume of the pod",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "image": {}}]},
            ["spec.volumes[0].image.reference: Required value"],
            id="an image without a name",
        ),
    ],
)
def test_volumes_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors
