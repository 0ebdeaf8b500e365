"""The ability to mount: whether a process here can be given a view of its own of the file system.

Comes in   this machine
Goes out   `MountAbility`, found out by trying

Who is root can. Who is not can where the kernel lets everybody make user namespaces; distributions differ.
"""

from __future__ import annotations

import os
import subprocess

from mooring.kubelet.volumes.entry_command import MountAbility, entry_command
from mooring.kubelet.volumes.mounts import Mount

TRY_S_MAX = 10.0


def mount_ability() -> MountAbility:
    """What works here: a mount is made, in a process that ends at once. Takes a moment, and blocks."""
    for ability in (MountAbility.ROOT, MountAbility.USER_NAMESPACE):
        if ability is MountAbility.ROOT and os.geteuid() != 0:
            continue
        if _works(ability):
            return ability
    return MountAbility.NONE


def _works(ability: MountAbility) -> bool:
    reading, writing = os.pipe()
    try:
        # At a path that is nowhere, so that the making of mount points is tried as well.
        mounts = [Mount("try", "/", "/.mooring-try/below")]
        command = entry_command(["true"], mounts=mounts, ability=ability, directory="/", error_fd=writing)
        ended = subprocess.run(command, pass_fds=(writing,), timeout=TRY_S_MAX, check=False, capture_output=True)
        return ended.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        os.close(reading)
        os.close(writing)
