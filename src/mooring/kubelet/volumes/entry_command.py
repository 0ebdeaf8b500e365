"""The entry command: how `entry` is started.

Comes in   a command, and what it is to see
Goes out   another command, which becomes the first one
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import Enum

from mooring.kubelet.volumes import entrypoint
from mooring.kubelet.volumes.mounts import Mount

# Isolated from the variables of the container, and without the packages that are installed here: those take longer
# to find than everything else.
_PYTHON = (sys.executable, "-I", "-S", "-X", "utf8")


class MountAbility(Enum):
    """How a process gets mounts of its own."""

    NONE = entrypoint.NONE
    ROOT = entrypoint.ROOT
    USER_NAMESPACE = entrypoint.USER_NAMESPACE


def entry_command(
    argv: Sequence[str],
    *,
    mounts: Sequence[Mount] = (),
    ability: MountAbility,
    directory: str,
    error_fd: int,
    joins_pid: int = 0,
) -> list[str]:
    """What to run instead of `argv`: with the pipe `error_fd` open, on which it says why it cannot.

    With `joins_pid`, where that process is: `mounts` are its.
    """
    options = {
        "mounts": [(mount.source, mount.target, mount.is_read_only) for mount in mounts],
        "ability": ability.value,
        "directory": directory,
        "errors": error_fd,
        "joins": joins_pid,
    }
    return [*_PYTHON, entrypoint.__file__, json.dumps(options), *argv]
