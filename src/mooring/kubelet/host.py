"""Facts about this machine, as a kubelet reports them in its node.

Input: files of the kernel. Output: `HostFacts`.

 1. A file that cannot be read leaves its fact empty.
 2. The address is the one by which other machines reach this one. Pods have it too, as they share the host's network. A
    machine without a network has loopback.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from mooring.kit.host_address import host_address

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_NAME_LENGTH_MAX = 63


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One machine."""

    name: str
    """As a node can be called."""
    address: str
    cpus: int
    memory_kib: int
    storage_kib: int
    architecture: str
    kernel: str
    os_image: str
    machine_id: str
    boot_id: str
    system_uuid: str


def host_facts() -> HostFacts:
    """This machine."""
    name = node_name_of(socket.gethostname())
    machine_id = _line("/etc/machine-id") or blake2b(name.encode(), digest_size=16).hexdigest()
    machine = platform.machine()
    return HostFacts(
        name=name,
        address=host_address(),
        cpus=len(os.sched_getaffinity(0)),
        memory_kib=memory_kib_of(_text("/proc/meminfo")),
        storage_kib=shutil.disk_usage(os.sep).total // 1024,
        architecture=_ARCHITECTURES.get(machine, machine),
        kernel=platform.release(),
        os_image=os_image_of(_text("/etc/os-release")),
        machine_id=machine_id,
        boot_id=_line("/proc/sys/kernel/random/boot_id"),
        system_uuid=_line("/sys/class/dmi/id/product_uuid") or machine_id,
    )


def node_name_of(hostname: str) -> str:
    """A host's name as the name of a node: small letters, digits and hyphens."""
    name = re.sub(r"[^a-z0-9.-]+", "-", hostname.lower())[:_NAME_LENGTH_MAX].strip("-.")
    return name or "localhost"


def memory_kib_of(text: str) -> int:
    found = re.search(r"^MemTotal:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) if found else 0


def os_image_of(text: str) -> str:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    return found[1] if found else "Linux"


def _line(path: str) -> str:
    return _text(path).strip()


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
