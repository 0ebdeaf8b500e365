"""Files and directories of volumes, on disk."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from mooring.kubelet.full_views import HostPathVolume
from mooring.kubelet.volumes.projected_files import File
from mooring.kubelet.volumes.writing import HostPathError, check_host_path, link_directory, make_empty, write_files


def test_files_are_written_with_their_modes(tmp_path: Path) -> None:
    write_files(tmp_path / "v", {"a": File(b"1", 0o640), "x/y": File(b"2", 0o755)})

    assert sorted(path.relative_to(tmp_path / "v").as_posix() for path in (tmp_path / "v").rglob("*")) == [
        "a",
        "x",
        "x/y",
    ]
    assert (tmp_path / "v/a").read_bytes() == b"1"
    assert [(tmp_path / "v" / path).stat().st_mode & 0o7777 for path in ("a", "x/y")] == [0o640, 0o755]


def test_files_are_written_again(tmp_path: Path) -> None:
    write_files(tmp_path, {"a": File(b"1", 0o400)})
    write_files(tmp_path, {"a": File(b"2", 0o400)})

    assert (tmp_path / "a").read_bytes() == b"2"


@pytest.mark.parametrize("path", ["../a", "x/../../a", "/a"])
def test_no_path_leads_out_of_the_volume(tmp_path: Path, path: str) -> None:
    with pytest.raises(OSError, match="leads out"):
        write_files(tmp_path / "v", {path: File(b"", 0o644)})


def test_an_empty_directory_is_for_everybody_and_stays(tmp_path: Path) -> None:
    make_empty(tmp_path / "v")
    (tmp_path / "v/kept").touch()
    make_empty(tmp_path / "v")

    assert (tmp_path / "v").stat().st_mode & 0o7777 == 0o777
    assert os.listdir(tmp_path / "v") == ["kept"]


def test_a_directory_has_another_name_however_often_it_is_given(tmp_path: Path) -> None:
    for _ in range(2):
        link_directory(tmp_path / "pod/v", tmp_path / "disk")

    (tmp_path / "disk/kept").touch()
    assert os.listdir(tmp_path / "pod/v") == ["kept"]


@pytest.mark.parametrize(
    ("kind", "path", "is_fine"),
    [
        pytest.param("", "directory", True, id="whatever it is"),
        pytest.param("", "new/one", True, id="what is not there is made"),
        pytest.param("Directory", "directory", True, id="a directory"),
        pytest.param("Directory", "file", False, id="no directory"),
        pytest.param("Directory", "nowhere", False, id="no directory there"),
        pytest.param("DirectoryOrCreate", "new/one", True, id="a directory is made"),
        pytest.param("File", "file", True, id="a file"),
        pytest.param("File", "directory", False, id="no file"),
        pytest.param("FileOrCreate", "new", True, id="a file is made"),
        pytest.param("Socket", "socket", True, id="a socket"),
        pytest.param("Socket", "file", False, id="no socket"),
        pytest.param("CharDevice", "/dev/null", True, id="a device"),
        pytest.param("BlockDevice", "file", False, id="no device"),
    ],
)
def test_a_path_of_the_host_is_what_the_pod_says(tmp_path: Path, kind: str, path: str, is_fine: bool) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(tmp_path / "socket"))  # a whole path may be too long for a socket
        volume = HostPathVolume(path=str(tmp_path / path), type=kind)
        if is_fine:
            check_host_path(volume)
            assert (tmp_path / path).exists()
            return
        with pytest.raises(HostPathError, match=r"hostPath type check failed: .* is not a "):
            check_host_path(volume)
