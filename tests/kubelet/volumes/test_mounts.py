"""Mounts of a container, the entrypoint command, and whether mounting is possible."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mooring.kubelet.environment.references import ContainerConfigError
from mooring.kubelet.volumes import entrypoint
from mooring.kubelet.volumes import mounts as mounts_module
from mooring.kubelet.volumes.mounts import (
    Mount,
    MountAbility,
    entry_command,
    mount_ability,
    mounts_of,
    unmountable_message,
    volume_variables,
)
from tests.kubelet.full_pods import pod_with

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

    assert seen == Mount(mount["name"], source.format(tmp_path), "/data", is_read_only)
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

    assert volume_variables(mounts) == {"MOORING_VOLUME_MY_DATA_V1": "/pods/1/a", "MOORING_VOLUME_X": "/s"}


def test_who_cannot_mount_says_so() -> None:
    message = unmountable_message([Mount("data", "/pods/1/data", "/data"), Mount("x", "/s", "/x")])

    assert message.endswith("variables say: /data ($MOORING_VOLUME_DATA), /x ($MOORING_VOLUME_X)")


def test_a_command_is_wrapped() -> None:
    command = entry_command(
        ["sh", "-c", "echo"],
        mounts=[Mount("v", "/a", "/b", is_read_only=True)],
        ability=MountAbility.ROOT,
        directory="/work",
        error_fd=3,
        joins_pid=7,
    )

    assert command[:6] == [sys.executable, "-I", "-S", "-X", "utf8", entrypoint.__file__]
    assert json.loads(command[6]) == {
        "mounts": [["/a", "/b", True]],
        "ability": "root",
        "directory": "/work",
        "errors": 3,
        "joins": 7,
    }
    assert command[7:] == ["sh", "-c", "echo"]


def test_it_is_found_out_by_trying() -> None:
    found = mount_ability()

    assert found in MountAbility
    assert found is not MountAbility.ROOT or os.geteuid() == 0
    assert not os.path.exists("/.mooring-try")


@pytest.mark.parametrize(
    ("is_root", "works", "wanted"),
    [
        pytest.param(True, {"root", "user namespace"}, MountAbility.ROOT, id="root can"),
        pytest.param(False, {"root", "user namespace"}, MountAbility.USER_NAMESPACE, id="others can in a namespace"),
        pytest.param(True, {"user namespace"}, MountAbility.USER_NAMESPACE, id="a root who may not"),
        pytest.param(False, set(), MountAbility.NONE, id="nobody can"),
    ],
)
def test_the_best_way_is_taken(
    monkeypatch: pytest.MonkeyPatch, is_root: bool, works: set[str], wanted: MountAbility
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    monkeypatch.setattr(mounts_module, "_works", lambda way: way.value in works)

    assert mount_ability() is wanted
