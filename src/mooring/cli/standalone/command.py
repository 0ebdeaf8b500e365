"""The commands `mooring controllers` and `mooring nodes`.

`mooring controllers` accepts all flags of kube-controller-manager, so that its command line works unchanged.
`SWITCHES` and `VALUES` list those without effect here; using them logs a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import click

from mooring.cli.flags import (
    FlagType,
    SectionedCommand,
    ValueType,
    duration_option,
    names_in,
    switch_option,
    with_options,
)
from mooring.cli.up.command import (
    EXISTING_FILE,
    PROCESS,
    Command,
    controller_settings,
    hollow_node_options,
    log_options,
    node_lease_option,
    pod_users_option,
    routine_events_option,
    runtime_option,
    stages_option,
    with_controller_flags,
)
from mooring.controllers.settings import flag_names
from mooring.kit.memory import end_loading, loading

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
    "authentication-token-webhook-cache-ttl",
    "authorization-always-allow-paths",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
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
    "service-account-private-key-file",
    "service-cluster-ip-range",
    "show-hidden-metrics-for-version",
    "tls-cipher-suites",
    "tls-curve-preferences",
    "tls-min-version",
    "tls-sni-cert-key",
    "v",
    "vmodule",
]

logger = logging.getLogger(__name__)
SIMULATED_COUNT = 10


def with_ignored_flags(command: Command) -> Command:
    """Adds hidden options for flags without effect."""
    for name in VALUES:
        command = click.option(f"--{name}", _attribute(name), hidden=True)(command)
    for name in SWITCHES:
        switch: dict[str, Any] = {"is_flag": False, "flag_value": "true", "type": ValueType(FlagType.SWITCH)}
        command = click.option(f"--{name}", _attribute(name), hidden=True, **switch)(command)
    return command


def warn_of_ignored_flags(flags: Mapping[str, Any]) -> None:
    """Logs one line with all ignored flags that were given."""
    given = [f"--{name}" for name in (*SWITCHES, *VALUES) if flags[_attribute(name)] is not None]
    if given:
        logger.warning("flags without effect: %s", ", ".join(sorted(given)))


def _attribute(name: str) -> str:
    return f"idle_{name.replace('-', '_')}"


_lease_options = with_options(
    switch_option("--leader-elect", default=True, help="Run only while holding the lease. [default: true]"),
    duration_option(
        "--leader-elect-lease-duration",
        "lease_s",
        default="15s",
        help="How long others wait for a leader that does not renew.",
    ),
    duration_option(
        "--leader-elect-renew-deadline",
        "renew_deadline_s",
        default="10s",
        help="How long a leader continues without renewing its lease.",
    ),
    click.option("--leader-elect-resource-name", "lease_name", default="", help="The lease's name."),
    click.option(
        "--leader-elect-resource-namespace", "lease_namespace", default="kube-system", help="The lease's namespace."
    ),
    duration_option(
        "--leader-elect-retry-period", "retry_s", default="2s", help="The interval of renewing or checking the lease."
    ),
)
"""Leader election."""

_port_options = with_options(
    click.option("--bind-address", default="0.0.0.0", show_default=True, help="The address of the port."),
    click.option(
        "--cert-dir",
        type=click.Path(path_type=Path),
        help="The directory of a self-signed certificate, created if missing. [default: in memory]",
    ),
    click.option(
        "--tls-cert-file",
        type=EXISTING_FILE,
        help="The certificate of the port. [default: one in --cert-dir, self-signed]",
    ),
    click.option("--tls-private-key-file", type=EXISTING_FILE, help="The key of --tls-cert-file."),
    click.option(
        "--authentication-kubeconfig",
        type=EXISTING_FILE,
        help="The kubeconfig for authenticating requests to the port. [default: that of the component]",
    ),
    click.option(
        "--authorization-kubeconfig",
        type=EXISTING_FILE,
        help="The kubeconfig for authorizing requests to the port. [default: that of the component]",
    ),
)
"""The secure port: health without authentication, metrics for users who may read them."""

_common_options = with_options(
    click.option(
        "--kubeconfig",
        type=EXISTING_FILE,
        help="The kubeconfig. [default: $KUBECONFIG, the service account of the pod, ~/.kube/config]",
    ),
    click.option("--master", default="", help="The address of the API server; overrides the kubeconfig."),
    _lease_options,
    _port_options,
    click.option(
        "--kube-api-qps",
        "requests_per_s",
        default=0.0,
        help="Maximum requests per second. [default: no limit]",
    ),
    click.option(
        "--kube-api-burst", "burst", default=0, help="Maximum burst of requests. [default: as --kube-api-qps]"
    ),
    log_options,
)
"""The options of both commands."""


_CLUSTER = ("kubeconfig", "master", "requests_per_s", "burst")
_ELECTION = ("leader_elect", "lease_s", "renew_deadline_s", "retry_s", "lease_name", "lease_namespace")
_PORT = (
    *("port", "bind_address", "cert_dir", "tls_cert_file", "tls_private_key_file"),
    *("authentication_kubeconfig", "authorization_kubeconfig"),
)
_LOGS = ("is_verbose", "log_format")


class ControllersCommand(SectionedCommand):
    """`mooring controllers`."""

    sections: ClassVar = {
        "Controllers": ["names", "root_ca_file"],
        "Cluster": _CLUSTER,
        "Leader election": _ELECTION,
        "Health and metrics": _PORT,
        "Logs": _LOGS,
    }


class NodesCommand(SectionedCommand):
    """`mooring nodes`."""

    sections: ClassVar = {
        "Nodes": [
            *("count", "name_prefix", "cpu", "memory", "pods", "zones", "node_templates"),
            *("runtime", "pod_users", "data_dir", "stages", "routine_events", "node_lease_s"),
        ],
        "Cluster": _CLUSTER,
        "Leader election": _ELECTION,
        "Health, metrics and logs": _PORT,
        "Logs": _LOGS,
    }


@click.command(
    cls=ControllersCommand, epilog="It also takes the flags of kube-controller-manager; docs/up.md lists them."
)
@_common_options
@click.option(
    "--secure-port",
    "port",
    default=10_257,
    show_default=True,
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="The port of health and metrics; 0: none.",
)
@click.option("--controllers", "names", default="*", show_default=True, help="Names, *, or -NAME for all but that.")
@click.option(
    "--root-ca-file",
    type=EXISTING_FILE,
    help="The CA certificates of the ConfigMaps kube-root-ca.crt. [default: those of the kubeconfig]",
)
@with_controller_flags
@with_ignored_flags
def controllers(names: str, root_ca_file: Path | None, **flags: Any) -> None:
    """Run the controllers against any API server.

    They create the pods of Deployments and other workloads, detect lost nodes, and collect garbage.
    """
    with loading():
        from mooring.cli.standalone import run  # imports the controllers and kubelets: not for `mooring --help`

        end_loading()

    options = run.standalone_options(flags)
    settings = controller_settings({name: flags[name] for name in flag_names().values()})
    run.start_logging(options)
    warn_of_ignored_flags(flags)
    run.run_controllers(options, settings, names_in(names), root_ca_file)


@click.command(cls=NodesCommand, short_help="Run nodes against any API server.")
@_common_options
@click.option(
    "--count",
    type=click.IntRange(1),
    metavar="N",
    help="How many nodes. [default: 10; 1 with --runtime process; none with --node-templates]",
)
@runtime_option
@pod_users_option
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="The directory of pods of the process runtime. [default: a temporary one]",
)
@click.option(
    "--kubelet-port",
    "port",
    default=10_250,
    show_default=True,
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="The port of health, metrics, and logs with --runtime process; 0: any.",
)
@click.option("--name-prefix", default="node-", show_default=True, help="Nodes are named PREFIX0, PREFIX1, …")
@hollow_node_options
@node_lease_option
@routine_events_option
@stages_option
def nodes(
    count: int | None,
    runtime: str,
    pod_users: str | None,
    data_dir: Path | None,
    name_prefix: str,
    node_lease_s: int,
    routine_events: bool | None,
    stages: Path | None,
    **flags: Any,
) -> None:
    """Add nodes to any cluster, and run the pods that are bound to them.

    The nodes are hollow, with the resources below; or they are this machine (--runtime process).
    """
    with loading():
        from mooring.cli.standalone import run  # imports the controllers and kubelets: not for `mooring --help`
        from mooring.cli.up.shapes import node_shapes, shape_options

        end_loading()

    options = run.standalone_options(flags)
    run.start_logging(options)
    shape = shape_options(flags)
    templates_only = shape.node_templates is not None and count is None
    wanted = count if count is not None else 1 if runtime == PROCESS else 0 if templates_only else SIMULATED_COUNT
    shapes = node_shapes(shape, wanted, runtime, name_prefix)
    if runtime == PROCESS:
        run.run_real_nodes(options, count=wanted, directory=data_dir, pod_users=pod_users or "")
        return
    run.run_nodes(
        options,
        count=wanted,
        name_prefix=name_prefix,
        shapes=shapes,
        node_lease_s=node_lease_s,
        routine_events=routine_events,
        stages=stages,
    )
