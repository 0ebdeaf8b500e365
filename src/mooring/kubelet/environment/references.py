"""What was found out before a container's environment is made.

Comes in   nothing: these are values
Goes out   `Found`, `Place`; and the one error of this folder

An object that is not there is None in `Found`: whether that is an error is for the reference to say (`optional`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mooring.api.views.base import RawQuantity
from mooring.api.views.workloads import Service
from mooring.kubelet.full_views import ConfigMap, Secret


class ContainerConfigError(Exception):
    """A container cannot be made as its pod wants it; the text is what is told as `CreateContainerConfigError`.

    It can help to try again: what is missing may come.
    """


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod runs."""

    pod_ip: str
    host_ip: str
    allocatable: Mapping[str, RawQuantity] = field(default_factory=dict)
    """What the node has for pods, as its status says: the limits of who has none."""


@dataclass(frozen=True, slots=True)
class Found:
    """The objects that a pod refers to, by name, and the services that it should know."""

    config_maps: Mapping[str, ConfigMap | None] = field(default_factory=dict)
    secrets: Mapping[str, Secret | None] = field(default_factory=dict)
    services: Sequence[Service] = ()

    def config_map(self, name: str, *, is_optional: bool) -> ConfigMap | None:
        """None if it is not there and need not be. Raises `ContainerConfigError`."""
        found = self.config_maps[name]
        if found is None and not is_optional:
            raise ContainerConfigError(f'configmap "{name}" not found')
        return found

    def secret(self, name: str, *, is_optional: bool) -> Secret | None:
        """None if it is not there and need not be. Raises `ContainerConfigError`."""
        found = self.secrets[name]
        if found is None and not is_optional:
            raise ContainerConfigError(f'secret "{name}" not found')
        return found
