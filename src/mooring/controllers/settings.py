"""Settings of the controllers, named like the flags of kube-controller-manager.

A field is named like its flag, with the unit at the end if it is a duration: `node_monitor_period_s` is
`--node-monitor-period`. The defaults are those of kube-controller-manager v1.36.
"""

from __future__ import annotations

from dataclasses import dataclass


class SettingError(ValueError):
    """An unknown controller."""


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
