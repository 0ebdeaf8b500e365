"""Mounts of a container."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from mooring.kubelet.references import ContainerConfigError
from mooring.kubelet.volumes.mounts import (
    Mount,
    mounts_of,
    unmountable_message,
    volume_variables,
)
from tests.kubelet.harness import pod_with

VOLUMES = [
    {"name": "data", "emptyDir": {}},
    {"name": "settings", "configMap": {"name": "settings"}},
    {"name": "host", "hostPath": {"path": "/srv"}},
]


def mounted(tmp_path: Path, **mount: Any) -> Mount:
    (tmp_path / "data").mkdir(exist_ok=True)
    one = pod_with({"volumes": VOLUMES}, volumeMounts=[mount])
    return mounts_of(one, one.spec.containers[0], {"POD": "web-0", "EMPTY": ""}, tmp_path)[0]


@pytest.mark.parametrize(
    ("mount", "source", "is_read_only"),
    [
        pytest.param({"name": "data"}, "{}/data", False, id="a volume of the pod"),
        pytest.param({"name": "data", "readOnly": True}, "{}/data", True, id="for reading alone"),
        pytest.param({"name": "settings"}, "{}/settings", True, id="what we wrote is for reading alone"),
        pytest.param({"name": "host"}, "/srv", False, id="a path of the host"),
        pytest.param({"name": "data", "subPath": "a/b"}, "{}/data/a/b", False, id="a part of it, which is made"),
        pytest.param({"name": "data", "subPathExpr": "x-$(POD)"}, "{}/data/x-web-0", False, id="by a variable"),
    ],
)
def test_a_volume_is_seen(tmp_path: Path, mount: dict[str, Any], source: str, is_read_only: bool) -> None:
    seen = mounted(tmp_path, mountPath="/data", **mount)

    assert seen == Mount(mount["name"], source.format(tmp_path), "/data", is_read_only, mount["name"] != "host")
    if "subPath" in mount:
        assert Path(seen.source).is_dir()


@pytest.mark.parametrize(
    ("mount", "wanted"),
    [
        pytest.param({"name": "other"}, 'cannot find volume "other" to mount into container "main"', id="no volume"),
        pytest.param({"subPath": "/etc"}, "error SubPath `/etc` must not be an absolute path", id="absolute"),
        pytest.param(
            {"subPath": "a/../.."}, "unable to provision SubPath `a/../..`: must not contain '..'", id="upwards"
        ),
        pytest.param({"subPathExpr": "$(NO)/$(EMPTY)"}, "missing value for EMPTY, NO", id="a variable without a value"),
        pytest.param(
            {"subPath": "link"},
            'failed to prepare subPath for volumeMount "data" of container "main"',
            id="a link that leads out",
        ),
    ],
)
def test_what_cannot_be_seen_is_refused(tmp_path: Path, mount: dict[str, Any], wanted: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/link").symlink_to("/etc")

    with pytest.raises(ContainerConfigError) as refused:
        mounted(tmp_path, **{"name": "data", "mountPath": "/data", **mount})

    assert str(refused.value) == wanted


def test_variables_say_where_volumes_are() -> None:
    mounts = [
        Mount("my-data.v1", "/pods/1/a", "/data"),
        Mount("my-data.v1", "/pods/1/a/b", "/b"),
        Mount("x", "/s", "/x"),
    ]

    assert volume_variables(mounts, are_mounted=False) == {
        "MOORING_VOLUME_MY_DATA_V1": "/pods/1/a",
        "MOORING_VOLUME_X": "/s",
    }
    assert volume_variables(mounts, are_mounted=True) == {
        "MOORING_VOLUME_MY_DATA_V1": "/data",
        "MOORING_VOLUME_X": "/x",
    }


def test_mounts_that_are_not_possible_are_reported() -> None:
    message = unmountable_message([Mount("data", "/pods/1/data", "/data"), Mount("x", "/s", "/x")])

    assert message.endswith("variables say: /data ($MOORING_VOLUME_DATA), /x ($MOORING_VOLUME_X)")


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        pytest.param("open/there", "", id="open to all"),
        pytest.param("closed/there", "is below {}/closed, which is closed to the users of pods", id="closed"),
        pytest.param("open/link", "is below {}/closed, which is closed to the users of pods", id="behind a link"),
        pytest.param("open/missing", "does not exist, and pods with users of their own cannot create it", id="missing"),
    ],
)
def test_a_path_of_the_host_is_open_to_all_users_or_not_mounted(path: str, wanted: str) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        root = Path(folder).resolve()
        root.chmod(0o755)
        for name, mode in (("open", 0o755), ("closed", 0o700)):
            (root / name / "there").mkdir(parents=True)
            (root / name).chmod(mode)
        (root / "open/link").symlink_to(root / "closed/there")
        one = pod_with(
            {"volumes": [{"name": "v", "hostPath": {"path": str(root / path)}}]},
            volumeMounts=[{"name": "v", "mountPath": "/v"}],
        )
        main = one.spec.containers[0]
        if not wanted:
            assert mounts_of(one, main, {}, root, has_separate_users=True)[0].source == str(root / path)
            return
        with pytest.raises(ContainerConfigError) as caught:
            mounts_of(one, main, {}, root, has_separate_users=True)
        assert str(caught.value).endswith(wanted.format(root))
        assert mounts_of(one, main, {}, root)[0].target == "/v"
