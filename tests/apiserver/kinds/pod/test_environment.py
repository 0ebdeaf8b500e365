"""Tests of kinds.pod.environment."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import errors_of, pod


@pytest.mark.parametrize(
    ("container", "errors"),
    [
        pytest.param({"env": [{"name": "A", "value": "b"}]}, [], id="a plain variable"),
        pytest.param({"env": [{"value": "b"}]}, ["spec.containers[0].env[0].name: Required value"], id="no name"),
        pytest.param(
            {"env": [{"name": "a=b"}]},
            [
                (
                    'spec.containers[0].env[0].name: Invalid value: "a=b": a valid environment variable '
                    "name must consist only of printable ASCII characters other than '='"
                )
            ],
            id="an equals sign in a name",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            [
                (
                    'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when '
                    "`value` is not empty"
                )
            ],
            id="a value and a source",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {}}]},
            [
                (
                    'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: '
                    "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
                )
            ],
            id="an empty source",
        ),
        pytest.param(
            {
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {
                            "fieldRef": {"fieldPath": "metadata.name"},
                            "secretKeyRef": {"name": "s", "key": "k"},
                        },
                    }
                ]
            },
            [
                (
                    'spec.containers[0].env[0].valueFrom: Invalid value: "": may not have more than one '
                    "field specified at a time"
                )
            ],
            id="two sources",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]},
            [
                (
                    "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "
                    '"metadata.labels": supported values: "metadata.name", "metadata.namespace", '
                    '"metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", '
                    '"status.hostIPs", "status.podIP", "status.podIPs"'
                )
            ],
            id="all labels, which only files support",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}]},
            [],
            id="one label",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}}]},
            [
                (
                    'spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: "a b": name part must '
                    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
                    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                )
            ],
            id="an invalid label",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName['a']"}}}]},
            [
                (
                    "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "
                    "\"spec.nodeName['a']\": error converting fieldPath: field label does not support "
                    "subscript: spec.nodeName['a']"
                )
            ],
            id="an unsupported subscript",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.host"}}}]},
            [],
            id="the deprecated field spec.host",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}}]},
            [
                (
                    "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "
                    '"metadata.name": error converting fieldPath: unsupported pod version: v2'
                )
            ],
            id="another version",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}]},
            [
                (
                    "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "
                    '"limits.cpu": only divisor\'s values 1m and 1 are supported with the cpu resource'
                )
            ],
            id="an unsupported divisor of cpu",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1m"}}}]},
            [
                (
                    "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "
                    '"limits.memory": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, '
                    "1Pi, 1Ei are supported with the memory resource"
                )
            ],
            id="an unsupported divisor of memory",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi"}}}]},
            [],
            id="huge pages",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": ""}}}]},
            ["spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value"],
            id="an empty key of a secret",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {}}}]},
            [
                "spec.containers[0].env[0].valueFrom.fileKeyRef.key: Required value",
                "spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Required value",
                "spec.containers[0].env[0].valueFrom.fileKeyRef.path: Required value",
                'spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: ""',
            ],
            id="an empty key of a file",
        ),
        pytest.param(
            {"envFrom": [{}]},
            [('spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`')],
            id="imports without a source",
        ),
        pytest.param(
            {"envFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]},
            [('spec.containers[0].envFrom: Invalid value: "": may not have more than one field specified at a time')],
            id="imports from two sources",
        ),
        pytest.param(
            {"envFrom": [{"configMapRef": {}}]},
            ["spec.containers[0].envFrom[0].configMapRef.name: Required value"],
            id="imports from a config map without a name",
        ),
    ],
)
def test_environment_variables_are_validated(container: Document, errors: list[str]) -> None:
    assert errors_of(pod(container=container)) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "v", "mountPath": "/a"}],
                        "volumeDevices": [{"name": "p", "devicePath": "/b"}],
                    }
                ],
            },
            [],
            id="valid",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {"name": "c", "image": "i", "volumeMounts": [{"name": "zz", "mountPath": ""}], "volumeDevices": []}
                ],
            },
            [
                'spec.containers[0].volumeMounts[0].name: Not found: "zz"',
                "spec.containers[0].volumeMounts[0].mountPath: Required value",
            ],
            id="an unknown volume without a path",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}],
                        "volumeDevices": [],
                    }
                ],
            },
            ['spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique'],
            id="two mounts at one path",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "../x"}],
                        "volumeDevices": [],
                    }
                ],
            },
            ["spec.containers[0].volumeMounts.subPath: Invalid value: \"../x\": must not contain '..'"],
            id="a subPath with a parent segment",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "x", "subPathExpr": "$(Y)"}],
                        "volumeDevices": [],
                    }
                ],
            },
            [
                (
                    'spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: "$(Y)": subPathExpr '
                    "and subPath are mutually exclusive"
                )
            ],
            id="subPath and subPathExpr",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"}],
                        "volumeDevices": [],
                    }
                ],
            },
            [
                (
                    "spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount "
                    "propagation is available only to privileged containers"
                )
            ],
            id="Bidirectional propagation without privileges",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled"}],
                        "volumeDevices": [],
                    }
                ],
            },
            [
                (
                    "spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified "
                    "when readOnly is true"
                )
            ],
            id="recursiveReadOnly of a writable mount",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [
                            {"name": "v", "mountPath": "/a", "mountPropagation": "Q", "recursiveReadOnly": "Q"}
                        ],
                        "volumeDevices": [],
                    }
                ],
            },
            [
                (
                    'spec.containers[0].volumeMounts.mountPropagation: Unsupported value: "Q": supported '
                    'values: "Bidirectional", "HostToContainer", "None"'
                ),
                (
                    'spec.containers[0].volumeMounts.recursiveReadOnly: Unsupported value: "Q": supported '
                    'values: "Disabled", "Enabled", "IfPossible"'
                ),
            ],
            id="unknown values",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [],
                        "volumeDevices": [{"name": "v", "devicePath": "/a"}],
                    }
                ],
            },
            [
                (
                    'spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume '
                    "source type of PersistentVolumeClaim or Ephemeral for block mode"
                )
            ],
            id="a device on an empty directory",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [{"name": "p", "mountPath": "/a"}],
                        "volumeDevices": [{"name": "p", "devicePath": "/a"}],
                    }
                ],
            },
            [
                (
                    'spec.containers[0].volumeMounts[0].name: Invalid value: "p": must not already exist '
                    "in volumeDevices"
                ),
                (
                    'spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/a": must not already '
                    "exist as a path in volumeDevices"
                ),
                (
                    'spec.containers[0].volumeDevices[0].name: Invalid value: "p": must not already exist '
                    "in volumeMounts"
                ),
                (
                    'spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/a": must not already '
                    "exist as a path in volumeMounts"
                ),
            ],
            id="one volume as a device and as a mount",
        ),
        pytest.param(
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "x"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "volumeMounts": [],
                        "volumeDevices": [{"name": "p", "devicePath": "/a/../b"}],
                    }
                ],
            },
            [
                (
                    'spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/a/../b": can not '
                    "contain backsteps ('..')"
                )
            ],
            id="a device path with a parent segment",
        ),
    ],
)
def test_volume_mounts_and_devices_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors
