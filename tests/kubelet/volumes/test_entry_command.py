"""How the entry is started."""

from __future__ import annotations

import json
import sys

from mooring.kubelet.volumes import entrypoint
from mooring.kubelet.volumes.entry_command import MountAbility, entry_command
from mooring.kubelet.volumes.mounts import Mount


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
