"""What is wrong with mounts and devices."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
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
            id="a sound one",
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
            id="a volume that is not there, nowhere",
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
            id="two at one place",
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
            id="a part that climbs",
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
            id="a part told twice",
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
            id="propagation in both directions without the privilege",
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
            id="read-only all the way down, but writable",
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
            id="values that nobody knows",
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
            id="a device path that climbs",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
