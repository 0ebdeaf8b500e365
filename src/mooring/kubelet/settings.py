"""Settings of the kubelets, and facts about this machine.

Invalid settings raise `ValueError` here, before any node is registered.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from mooring.api.document import Document
from mooring.api.errors import QuantityError
from mooring.api.quantity import parse_quantity
from mooring.kit.build import ARCHITECTURES
from mooring.kit.host_address import host_address

_NAME_LENGTH_MAX = 63
LEASE_RENEWED_SHARE = 0.25
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class HostFacts:
    """This machine, as its node reports it. A file that cannot be read leaves its fact empty."""

    name: str
    """The host name as a node name."""
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
    """Reads the facts. The address is the one by which other machines reach this one, or loopback."""
    name = node_name_of(socket.gethostname())
    machine_id = _line("/etc/machine-id") or blake2b(name.encode(), digest_size=16).hexdigest()
    machine = platform.machine()
    return HostFacts(
        name=name,
        address=host_address(),
        cpus=len(os.sched_getaffinity(0)),
        memory_kib=memory_kib_of(_text("/proc/meminfo")),
        storage_kib=shutil.disk_usage(os.sep).total // 1024,
        architecture=ARCHITECTURES.get(machine, machine),
        kernel=platform.release(),
        os_image=os_image_of(_text("/etc/os-release")),
        machine_id=machine_id,
        boot_id=_line("/proc/sys/kernel/random/boot_id"),
        system_uuid=_line("/sys/class/dmi/id/product_uuid") or machine_id,
    )


def is_node_name(name: str) -> bool:
    return _NODE_NAME.fullmatch(name) is not None


def node_name_of(hostname: str) -> str:
    """A host name as a node name: lower case letters, digits, hyphens and dots."""
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


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """The resources of a node."""

    cpu: str = "32"
    memory: str = "256Gi"
    ephemeral_storage: str = "1Ti"
    pods: int = 110
    others: Mapping[str, str] = field(default_factory=dict)
    """Further resources, such as `example.com/gpu`."""
    architecture: str = "amd64"

    def __post_init__(self) -> None:
        amounts = {"cpu": self.cpu, "memory": self.memory, "ephemeral storage": self.ephemeral_storage, **self.others}
        for resource, amount in amounts.items():
            try:
                is_right = parse_quantity(amount).value() >= 0
            except QuantityError:
                is_right = False
            if not is_right:
                raise ValueError(f"{resource} of a node is {amount!r}; wanted an amount such as 4, 500m or 16Gi")
        if self.pods < 0:
            raise ValueError(f"a node takes {self.pods} pods; wanted 0 or more")


@dataclass(frozen=True, slots=True)
class DeviceTemplate:
    """Equal devices of a node, which a driver publishes in a ResourceSlice."""

    driver: str
    name: str
    """Devices are named `gpu-0`, `gpu-1`, and so on."""
    count: int
    attributes: Mapping[str, Document] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """Equal nodes, see `node_templates`."""

    name: str
    """Nodes are named `gpu-0`, `gpu-1`, and so on."""
    count: int
    shape: NodeCapacity = NodeCapacity()
    zones: tuple[str, ...] = ()
    """Assigned to the nodes in turn."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Document, ...] = ()
    devices: tuple[DeviceTemplate, ...] = ()


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """The nodes of one process."""

    count: int = 0
    name_prefix: str = "node-"
    """Nodes are named `node-0`, `node-1`, and so on."""
    shape: NodeCapacity = NodeCapacity()
    zones: tuple[str, ...] = ()
    """Assigned to the nodes in turn."""
    region: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    templates: tuple[NodeTemplate, ...] = ()
    """Further nodes, of other kinds."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of every node that these kubelets register."""
    stages: str = ""
    """The content of a stage file, see `simulated.stage_file`."""
    lease_s: int = 40
    """The duration of a lease. It is renewed four times in that time, as by a kubelet."""
    status_period_s: float = 300.0
    pod_writes_in_flight_max: int = 64
    node_writes_in_flight_max: int = 32
    records_normal_events: bool = False
    """Whether to record events of type Normal (Pulled, Created, Started, Killing): four for each pod."""
    port: int = 10_250
    """The port that nodes publish for logs."""
    host: HostFacts | None = None
    """This machine, for the process runtime; None for hollow nodes."""

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"the number of nodes is {self.count}; wanted 0 or more")
        if self.lease_s <= 0:
            raise ValueError(f"the lease duration is {self.lease_s} s; wanted 1 or more")
        if not is_node_name(f"{self.name_prefix}0"):
            expected = "lower case letters, digits, - and ., and a letter or digit first"
            raise ValueError(f"nodes would be called {self.name_prefix + '0'!r}; wanted {expected}")
        common = {name for name in self._plain_names() if name in self._templates_by_name()}
        if common:
            raise ValueError(f"node {min(common)} is named by the prefix {self.name_prefix!r} and by a template")

    @property
    def lease_period_s(self) -> float:
        return self.lease_s * LEASE_RENEWED_SHARE

    def node_names(self) -> tuple[str, ...]:
        return (*self._plain_names(), *self._templates_by_name())

    def kind_of(self, name: str, index: int) -> tuple[NodeTemplate, int]:
        """The template of a node, and its number in it. A node without one, such as an adopted node, is as `shape`."""
        if self.templates:
            template, _, number = name.rpartition("-")
            for node_template in self.templates:
                if node_template.name == template and number.isdecimal() and int(number) < node_template.count:
                    return node_template, int(number)
        return NodeTemplate(self.name_prefix, self.count, self.shape, self.zones, self.labels), index

    def _templates_by_name(self) -> dict[str, NodeTemplate]:
        return {
            f"{node_template.name}-{number}": node_template
            for node_template in self.templates
            for number in range(node_template.count)
        }

    def _plain_names(self) -> tuple[str, ...]:
        """A single node of the process runtime has the name of the machine."""
        if self.host is not None and self.count == 1:
            return (self.host.name,)
        prefix = f"{self.host.name}-" if self.host is not None else self.name_prefix
        return tuple(f"{prefix}{number}" for number in range(self.count))


def host_settings(host: HostFacts, count: int) -> KubeletSettings:
    """Settings for nodes that share this machine: each has an equal part of its resources."""
    shape = NodeCapacity(
        cpu=f"{host.cpus * 1000 // count}m" if count > 1 else str(host.cpus),
        memory=f"{host.memory_kib // count}Ki",
        ephemeral_storage=f"{host.storage_kib // count}Ki",
        architecture=host.architecture,
    )
    return KubeletSettings(count=count, shape=shape, host=host, records_normal_events=True)
