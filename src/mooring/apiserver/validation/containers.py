"""What is wrong with the containers of a pod: the ordinary ones, those that come before, and those that come later.

Comes in   the lists of containers and what they refer to (`PodGround`)
Goes out   faults, in Kubernetes' order

 1. Names are unique over all three lists. A clash is told by the list that comes later: init containers see the
    ordinary ones, ephemeral containers see both.
 2. Host ports clash among the ordinary containers; init containers run one at a time and clash only with themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.apiserver.validation.containers_common import (
    container_faults,
    container_image_space_faults,
    restart_policy_faults,
)
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, not_found, required
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.probes import lifecycle_faults, probes_faults

_NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
_EPHEMERAL_FORBIDDEN = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


@dataclass(frozen=True, slots=True)
class PodGround:
    """What containers stand on: facts about their pod."""

    volumes: Mapping[str, Document]
    """The volumes without faults, by name."""
    claim_names: Collection[str]
    grace_s: int | None
    restart_policy: str
    uses_host_users: bool
    options: PodOptions


def ordinary_containers_faults(containers: Sequence[Document], ground: PodGround, path: str) -> list[Fault]:
    if not containers:
        return [required(path)]
    faults: list[Fault] = []
    names: set[str] = set()
    for index, container in enumerate(containers):
        here, name = f"{path}[{index}]", container.get("name", "")
        faults += container_faults(container, ground, here)
        if name in names:
            faults.append(duplicate(f"{here}.name", name))
        names.add(name)
        faults += lifecycle_faults(container.get("lifecycle"), ground.grace_s, f"{here}.lifecycle")
        faults += probes_faults(container, here)
        faults += restart_policy_faults(container, here)
    return faults + _host_port_faults(containers, path)


def init_containers_faults(spec: Document, ground: PodGround, path: str) -> list[Fault]:
    faults: list[Fault] = []
    names = {container.get("name", "") for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        here, name = f"{path}[{index}]", container.get("name", "")
        faults += container_faults(container, ground, here)
        faults += restart_policy_faults(container, here, is_init=True)
        if name in names:
            faults.append(duplicate(f"{here}.name", name))
        elif name:
            names.add(name)
        faults += _host_port_faults([container], path)
        is_sidecar = container.get("restartPolicy") == "Always"
        if is_sidecar:
            faults += lifecycle_faults(container.get("lifecycle"), ground.grace_s, f"{here}.lifecycle")
            faults += probes_faults(container, here)
        else:
            faults += [
                forbidden(f"{here}.{field}", _NOT_FOR_INIT)
                for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
                if container.get(field) is not None
            ]
        if not is_sidecar and not ground.options.tolerates_init_resize_restart:
            faults += _init_resize_faults(container, here)
    return faults


def ephemeral_containers_faults(spec: Document, ground: PodGround, path: str) -> list[Fault]:
    containers: Sequence[Document] = spec.get("ephemeralContainers") or ()
    if not containers:
        return []
    faults: list[Fault] = []
    lasting = {each.get("name", "") for kind in ("containers", "initContainers") for each in spec.get(kind) or ()}
    names = set(lasting)
    for index, container in enumerate(containers):
        here, name, target = f"{path}[{index}]", container.get("name", ""), container.get("targetContainerName")
        faults += container_faults(container, ground, here)
        faults += container_image_space_faults(container, here)
        if name in names:
            faults.append(duplicate(f"{here}.name", name))
        names.add(name)
        if target and target not in lasting:
            faults.append(not_found(f"{here}.targetContainerName", target))
        faults += [
            forbidden(f"{here}.{field}", _NOT_EPHEMERAL) for field in _EPHEMERAL_FORBIDDEN if container.get(field)
        ]
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            faults += [
                forbidden(f"{here}.volumeMounts[{position}].{field}", _NOT_EPHEMERAL)
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
    return faults


# --- parts ------------------------------------------------------------------------------------------------------


def _host_port_faults(containers: Sequence[Document], path: str) -> list[Fault]:
    """Two ports of the same protocol and address on the host. Each list counts its containers from 0."""
    faults: list[Fault] = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in taken:
                faults.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
            taken.add(key)
    return faults


def _init_resize_faults(container: Document, path: str) -> list[Fault]:
    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", detail)
        for index, policy in enumerate(container.get("resizePolicy") or ())
        if policy.get("restartPolicy") == "RestartContainer"
    ]
