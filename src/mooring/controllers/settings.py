"""Settings of the controllers, named like the flags of kube-controller-manager.

Inputs: flags as text (`--node-monitor-period=500ms`), or values. Outputs: `ControllerSettings`, with the defaults
of kube-controller-manager v1.36.

1. A field is named like its flag, with the unit at the end if the flag's value has one: `node_monitor_period_s` is
   `--node-monitor-period`.
2. An unknown flag or an invalid value raises `SettingError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace

from mooring.api.durations import parse_duration
from mooring.api.well_known import FALSE_TEXTS, TRUE_TEXTS


class SettingError(ValueError):
    """An unknown flag, or an invalid value."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The settings of all controllers."""

    # Numbers of workers.
    concurrent_deployment_syncs: int = 5
    concurrent_replicaset_syncs: int = 5
    concurrent_rc_syncs: int = 5
    concurrent_statefulset_syncs: int = 5
    concurrent_daemonset_syncs: int = 2
    concurrent_job_syncs: int = 5
    concurrent_cron_job_syncs: int = 5
    concurrent_ttl_after_finished_syncs: int = 5
    concurrent_gc_syncs: int = 20
    concurrent_namespace_syncs: int = 10
    concurrent_endpoint_syncs: int = 5
    concurrent_service_endpoint_syncs: int = 5
    concurrent_ephemeralvolume_syncs: int = 5
    concurrent_resource_quota_syncs: int = 5
    concurrent_resourceclaim_syncs: int = 50

    # Nodes.
    node_monitor_period_s: float = 5.0
    node_monitor_grace_period_s: float = 50.0
    node_startup_grace_period_s: float = 60.0
    node_eviction_rate: float = 0.1
    secondary_node_eviction_rate: float = 0.01
    unhealthy_zone_threshold: float = 0.55
    large_cluster_size_threshold: int = 50

    # Periods and thresholds.
    pvclaimbinder_sync_period_s: float = 15.0
    resource_quota_sync_period_s: float = 300.0
    namespace_sync_period_s: float = 300.0
    terminated_pod_gc_threshold: int = 12_500
    endpoint_updates_batch_period_s: float = 0.0
    endpointslice_updates_batch_period_s: float = 0.0

    max_endpoints_per_slice: int = 100
    enable_dynamic_provisioning: bool = True
    enable_garbage_collector: bool = True


KUBERNETES_DEFAULTS = ControllerSettings()
IN_PROCESS_DEFAULTS = ControllerSettings(
    concurrent_deployment_syncs=30, concurrent_replicaset_syncs=30, concurrent_rc_syncs=30
)
"""Defaults next to our own API server: a worker mostly waits for the disk, and writes that wait together share a
commit."""


def flag_names() -> Mapping[str, str]:
    """Fields by flag."""
    return {f"--{field.name.removesuffix('_s').replace('_', '-')}": field.name for field in fields(ControllerSettings)}


def is_switch(name: str) -> bool:
    """Whether a field is a boolean."""
    return isinstance(getattr(ControllerSettings(), name), bool)


def settings_of_flags(
    flags: Mapping[str, str], defaults: ControllerSettings = KUBERNETES_DEFAULTS
) -> ControllerSettings:
    """Settings from flags. Raises `SettingError`."""
    known = flag_names()
    chosen: dict[str, object] = {}
    for flag, text in flags.items():
        name = known.get(flag)
        if name is None:
            raise SettingError(f"there is no flag {flag}; wanted one of {', '.join(sorted(known))}")
        chosen[name] = _read(flag, name, type(getattr(defaults, name)), text)
    return replace(defaults, **chosen)  # type: ignore[arg-type]


def _read(flag: str, name: str, kind: type, text: str) -> object:
    if name.endswith("_s"):
        with suppress(ValueError):
            if (seconds := parse_duration(text)) >= 0:
                return seconds
        raise SettingError(f"{flag}: {text!r} is not a duration; wanted one such as 500ms or 1m30s")
    if kind is bool:
        if text in TRUE_TEXTS + FALSE_TEXTS:
            return text in TRUE_TEXTS
        raise SettingError(f"{flag}={text}: wanted true or false")
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        raise SettingError(f"{flag}={text}: wanted {'an integer' if kind is int else 'a number'}") from None
