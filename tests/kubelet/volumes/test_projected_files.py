"""Files of configMap, secret, downwardAPI and projected volumes."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.kubelet.references import ReferencedObjects
from mooring.kubelet.views import ConfigMap, FullPod, Secret, TokenProjection
from mooring.kubelet.volumes.projected_files import (
    VolumeError,
    config_map_names,
    files_of,
    secret_names,
    token_projections,
)
from tests.kubelet.harness import PLACE, pod_with

FOUND = ReferencedObjects(
    {"settings": ConfigMap(data={"a": "1", "b": "2"}, binary_data={"c": b"\xff"}), "none": None},
    {"keys": Secret(data={"key": b"s3cret"}), "none": None},
)
TOKEN = TokenProjection(path="token", expiration_seconds=3607)


def of_volume(**source: Any) -> FullPod:
    return pod_with({"volumes": [{"name": "v", **source}], "labels": {"app": "web"}})


def files(**source: Any) -> dict[str, tuple[bytes, int]]:
    one = of_volume(**source)
    made = files_of(one.spec.volumes[0], one, FOUND, {TOKEN: "t0ken"}, PLACE)
    return {path: (file.data, file.mode) for path, file in made.items()}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        pytest.param(
            {"configMap": {"name": "settings"}},
            {"a": (b"1", 0o644), "b": (b"2", 0o644), "c": (b"\xff", 0o644)},
            id="all keys of a config map",
        ),
        pytest.param(
            {"configMap": {"name": "settings", "defaultMode": 0o600, "items": [{"key": "a", "path": "x/y"}]}},
            {"x/y": (b"1", 0o600)},
            id="one of them, elsewhere, for its owner alone",
        ),
        pytest.param(
            {"configMap": {"name": "settings", "items": [{"key": "a", "path": "run", "mode": 0o755}]}},
            {"run": (b"1", 0o755)},
            id="with a mode of its own",
        ),
        pytest.param(
            {"configMap": {"name": "settings", "optional": True, "items": [{"key": "no", "path": "x"}]}},
            {},
            id="an optional key",
        ),
        pytest.param({"configMap": {"name": "none", "optional": True}}, {}, id="an optional config map"),
        pytest.param({"secret": {"secretName": "keys"}}, {"key": (b"s3cret", 0o644)}, id="a secret"),
        pytest.param({"secret": {"secretName": "none", "optional": True}}, {}, id="an optional secret"),
        pytest.param(
            {
                "downwardAPI": {
                    "items": [
                        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
                    ]
                }
            },
            {"labels": (b'app="web"', 0o644), "cpu": (b"4", 0o644)},
            id="the pod's own fields",
        ),
        pytest.param(
            {
                "projected": {
                    "defaultMode": 0o440,
                    "sources": [
                        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                        {"configMap": {"name": "settings", "items": [{"key": "a", "path": "ca.crt"}]}},
                        {"secret": {"name": "keys"}},
                        {"downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
                    ],
                }
            },
            {
                "token": (b"t0ken", 0o440),
                "ca.crt": (b"1", 0o440),
                "key": (b"s3cret", 0o440),
                "ns": (b"default", 0o440),
            },
            id="all of them together",
        ),
    ],
)
def test_a_volume_has_its_files(source: dict[str, Any], wanted: dict[str, tuple[bytes, int]]) -> None:
    assert files(**source) == wanted


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param({"configMap": {"name": "none"}}, 'configmap "none" not found', id="no config map"),
        pytest.param({"secret": {"secretName": "none"}}, 'secret "none" not found', id="no secret"),
        pytest.param(
            {"configMap": {"name": "settings", "items": [{"key": "no", "path": "x"}]}},
            "configmap references non-existent config key: no",
            id="no key",
        ),
        pytest.param(
            {"secret": {"secretName": "keys", "items": [{"key": "no", "path": "x"}]}},
            "references non-existent secret key: no",
            id="no key in a secret",
        ),
        pytest.param(
            {"projected": {"sources": [{"configMap": {"name": "none"}}, {"secret": {"name": "none"}}]}},
            '[configmap "none" not found, secret "none" not found]',
            id="everything at once",
        ),
        pytest.param(
            {"projected": {"sources": [{"clusterTrustBundle": {"name": "x", "path": "x"}}]}},
            "this kubelet projects configMap, secret, downwardAPI and serviceAccountToken sources only",
            id="what we do not project",
        ),
    ],
)
def test_what_is_missing_is_said_as_the_kubelet_says_it(source: dict[str, Any], why: str) -> None:
    with pytest.raises(VolumeError) as refused:
        files(**source)

    assert str(refused.value) == f'MountVolume.SetUp failed for volume "v" : {why}'


def test_what_volumes_need_is_named_once() -> None:
    projected = [
        {"configMap": {"name": "b"}},
        {"configMap": {"name": "a"}},
        {"secret": {"name": "t"}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
    ]
    volumes = [
        {"name": "1", "configMap": {"name": "a"}},
        {"name": "2", "secret": {"secretName": "s"}},
        {"name": "3", "projected": {"sources": projected}},
        {"name": "4", "emptyDir": {}},
    ]
    wanted = pod_with({"volumes": volumes}).spec.volumes

    assert config_map_names(wanted) == ["a", "b"]
    assert secret_names(wanted) == ["s", "t"]
    assert token_projections(wanted) == [TOKEN]
