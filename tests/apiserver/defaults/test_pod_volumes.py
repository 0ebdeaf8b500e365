"""Defaults of volumes."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import with_volume


@pytest.mark.parametrize(
    ("source", "value"),
    [
        pytest.param({}, {"emptyDir": {}}, id="nothing is an empty directory"),
        pytest.param({"hostPath": {"path": "/a"}}, {"hostPath": {"path": "/a", "type": ""}}, id="a path on the host"),
        pytest.param(
            {"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}, id="a secret"
        ),
        pytest.param(
            {"configMap": {"name": "c", "defaultMode": 0}}, {"configMap": {"name": "c", "defaultMode": 0}}, id="0"
        ),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}}],
                    "defaultMode": 420,
                }
            },
            id="a token for an hour",
        ),
        pytest.param(
            {"image": {"reference": "x"}}, {"image": {"reference": "x", "pullPolicy": "Always"}}, id="an image"
        ),
        pytest.param(
            {"scaleIO": {"gateway": "a", "system": "b", "secretRef": {"name": "s"}}},
            {
                "scaleIO": {
                    "gateway": "a",
                    "system": "b",
                    "secretRef": {"name": "s"},
                    "storageMode": "ThinProvisioned",
                    "fsType": "xfs",
                }
            },
            id="a source with fixed defaults",
        ),
    ],
)
def test_volumes(source: Document, value: Document) -> None:
    assert with_volume(source)["spec"]["volumes"] == [{"name": "v", **value}]


def test_a_claim_is_a_file_system() -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}
    volume = with_volume({"ephemeral": {"volumeClaimTemplate": template}})["spec"]["volumes"][0]
    assert volume["ephemeral"]["volumeClaimTemplate"]["spec"]["volumeMode"] == "Filesystem"
