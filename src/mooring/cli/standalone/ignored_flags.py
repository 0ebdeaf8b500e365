"""Flags of kube-controller-manager that `mooring controllers` takes and that change nothing here.

Comes in   what somebody has in a manifest of kube-controller-manager
Goes out   options, and a word in the log about each one that was given

They are taken, because whoever has them must be able to put one in the place of the other. What they speak of is not
here: serving and its certificates, signing, clouds, addresses of nodes, autoscaling, recycling, profiles, features.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import click

from mooring.cli.flags import Sort, ValueType
from mooring.cli.up.command import Command

SWITCHES = [
    "allocate-node-cidrs",
    "authentication-skip-lookup",
    "authentication-tolerate-lookup-failure",
    "configure-cloud-routes",
    "contention-profiling",
    "disable-attach-detach-reconcile-sync",
    "disable-force-detach-on-timeout",
    "disable-http2-serving",
    "enable-hostpath-provisioner",
    "enable-leader-migration",
    "log-json-split-stream",
    "log-text-split-stream",
    "permit-address-sharing",
    "permit-port-sharing",
    "profiling",
    "use-service-account-credentials",
]
VALUES = [
    "allow-metric-labels",
    "allow-metric-labels-manifest",
    "attach-detach-reconcile-sync-period",
    "authentication-kubeconfig",
    "authentication-token-webhook-cache-ttl",
    "authorization-always-allow-paths",
    "authorization-kubeconfig",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "bind-address",
    "cert-dir",
    "cidr-allocator-type",
    "client-ca-file",
    "cloud-config",
    "cloud-provider",
    "cluster-cidr",
    "cluster-name",
    "cluster-signing-cert-file",
    "cluster-signing-duration",
    "cluster-signing-key-file",
    "cluster-signing-kube-apiserver-client-cert-file",
    "cluster-signing-kube-apiserver-client-key-file",
    "cluster-signing-kubelet-client-cert-file",
    "cluster-signing-kubelet-client-key-file",
    "cluster-signing-kubelet-serving-cert-file",
    "cluster-signing-kubelet-serving-key-file",
    "cluster-signing-legacy-unknown-cert-file",
    "cluster-signing-legacy-unknown-key-file",
    "concurrent-device-taint-eviction-syncs",
    "concurrent-horizontal-pod-autoscaler-syncs",
    "concurrent-service-syncs",
    "concurrent-serviceaccount-token-syncs",
    "concurrent-validating-admission-policy-status-syncs",
    "controller-shutdown-timeout",
    "controller-start-interval",
    "disabled-metrics",
    "emulated-version",
    "external-cloud-volume-plugin",
    "feature-gates",
    "flex-volume-plugin-dir",
    "horizontal-pod-autoscaler-cpu-initialization-period",
    "horizontal-pod-autoscaler-downscale-stabilization",
    "horizontal-pod-autoscaler-initial-readiness-delay",
    "horizontal-pod-autoscaler-sync-period",
    "horizontal-pod-autoscaler-tolerance",
    "http2-max-streams-per-connection",
    "kube-api-content-type",
    "leader-elect-resource-lock",
    "leader-migration-config",
    "legacy-service-account-token-clean-up-period",
    "log-flush-frequency",
    "log-json-info-buffer-size",
    "log-text-info-buffer-size",
    "logging-format",
    "min-compatibility-version",
    "min-resync-period",
    "mirroring-concurrent-service-endpoint-syncs",
    "mirroring-endpointslice-updates-batch-period",
    "mirroring-max-endpoints-per-subset",
    "node-cidr-mask-size",
    "node-cidr-mask-size-ipv4",
    "node-cidr-mask-size-ipv6",
    "pv-recycler-increment-timeout-nfs",
    "pv-recycler-minimum-timeout-hostpath",
    "pv-recycler-minimum-timeout-nfs",
    "pv-recycler-pod-template-filepath-hostpath",
    "pv-recycler-pod-template-filepath-nfs",
    "pv-recycler-timeout-increment-hostpath",
    "requestheader-allowed-names",
    "requestheader-client-ca-file",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
    "route-reconciliation-period",
    "secure-port",
    "service-account-private-key-file",
    "service-cluster-ip-range",
    "show-hidden-metrics-for-version",
    "tls-cert-file",
    "tls-cipher-suites",
    "tls-curve-preferences",
    "tls-min-version",
    "tls-private-key-file",
    "tls-sni-cert-key",
    "v",
    "vmodule",
]

logger = logging.getLogger(__name__)


def with_flags_without_effect(command: Command) -> Command:
    """The options of both sorts; they are in no help."""
    for name in VALUES:
        command = click.option(f"--{name}", _attribute(name), hidden=True)(command)
    for name in SWITCHES:
        switch: dict[str, Any] = {"is_flag": False, "flag_value": "true", "type": ValueType(Sort.SWITCH)}
        command = click.option(f"--{name}", _attribute(name), hidden=True, **switch)(command)
    return command


def tell_of_flags_without_effect(flags: Mapping[str, Any]) -> None:
    """One line for all that were given."""
    given = [f"--{name}" for name in (*SWITCHES, *VALUES) if flags[_attribute(name)] is not None]
    if given:
        logger.warning("without effect here: %s", ", ".join(sorted(given)))


def _attribute(name: str) -> str:
    return f"idle_{name.replace('-', '_')}"
