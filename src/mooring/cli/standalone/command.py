"""The commands `mooring controllers` and `mooring nodes`.

`mooring controllers` accepts all flags of kube-controller-manager, so that its command line works unchanged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import click

from mooring.cli.flags import (
    Flag,
    FlagSections,
    FlagType,
    SectionedCommand,
    attributes_by_section,
    flag_options,
    names_in,
    warn_of_flags_without_effect,
)
from mooring.cli.options import KUBECONFIG, MASTER, leader_election_flags, serving_flags
from mooring.cli.up.command import (
    PROCESS,
    controller_flags,
    controller_settings,
    hollow_node_options,
    log_options,
    node_lease_option,
    pod_users_option,
    routine_events_option,
    runtime_option,
    stages_option,
)
from mooring.controllers.settings import KUBERNETES_DEFAULTS
from mooring.kit.memory import end_loading, loading

SIMULATED_COUNT = 10

_IDLE_SWITCHES = """
    allocate-node-cidrs authentication-skip-lookup authentication-tolerate-lookup-failure
    configure-cloud-routes contention-profiling disable-attach-detach-reconcile-sync
    disable-force-detach-on-timeout disable-http2-serving enable-hostpath-provisioner
    enable-leader-migration log-json-split-stream log-text-split-stream permit-address-sharing
    permit-port-sharing profiling use-service-account-credentials
"""
_IDLE_VALUES = """
    allow-metric-labels allow-metric-labels-manifest attach-detach-reconcile-sync-period
    authentication-token-webhook-cache-ttl authorization-always-allow-paths
    authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
    cidr-allocator-type client-ca-file cloud-config cloud-provider cluster-cidr cluster-name
    cluster-signing-cert-file cluster-signing-duration cluster-signing-key-file
    cluster-signing-kube-apiserver-client-cert-file cluster-signing-kube-apiserver-client-key-file
    cluster-signing-kubelet-client-cert-file cluster-signing-kubelet-client-key-file
    cluster-signing-kubelet-serving-cert-file cluster-signing-kubelet-serving-key-file
    cluster-signing-legacy-unknown-cert-file cluster-signing-legacy-unknown-key-file
    concurrent-device-taint-eviction-syncs concurrent-horizontal-pod-autoscaler-syncs
    concurrent-service-syncs concurrent-serviceaccount-token-syncs
    concurrent-validating-admission-policy-status-syncs controller-shutdown-timeout
    controller-start-interval disabled-metrics emulated-version external-cloud-volume-plugin
    feature-gates flex-volume-plugin-dir horizontal-pod-autoscaler-cpu-initialization-period
    horizontal-pod-autoscaler-downscale-stabilization
    horizontal-pod-autoscaler-initial-readiness-delay horizontal-pod-autoscaler-sync-period
    horizontal-pod-autoscaler-tolerance http2-max-streams-per-connection kube-api-content-type
    leader-elect-resource-lock leader-migration-config legacy-service-account-token-clean-up-period
    log-flush-frequency log-json-info-buffer-size log-text-info-buffer-size
    min-compatibility-version min-resync-period mirroring-concurrent-service-endpoint-syncs
    mirroring-endpointslice-updates-batch-period mirroring-max-endpoints-per-subset
    node-cidr-mask-size node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6
    pv-recycler-increment-timeout-nfs pv-recycler-minimum-timeout-hostpath
    pv-recycler-minimum-timeout-nfs pv-recycler-pod-template-filepath-hostpath
    pv-recycler-pod-template-filepath-nfs pv-recycler-timeout-increment-hostpath
    requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix
    requestheader-group-headers requestheader-uid-headers requestheader-username-headers
    route-reconciliation-period service-account-private-key-file service-cluster-ip-range
    show-hidden-metrics-for-version tls-cipher-suites tls-curve-preferences tls-min-version
    tls-sni-cert-key v vmodule
"""
IDLE_FLAGS = (
    *(Flag(name, FlagType.SWITCH, False, "", has_effect=False) for name in _IDLE_SWITCHES.split()),
    *(Flag(name, FlagType.TEXT, "", "", has_effect=False) for name in _IDLE_VALUES.split()),
)
"""The flags of kube-controller-manager that have no effect here."""


def _component_flags(port: Flag, lease_name: str) -> FlagSections:
    """The flags of both commands, by section of the help."""
    return {
        "Cluster": (
            KUBECONFIG,
            MASTER,
            Flag("kube-api-qps", FlagType.NUMBER, 0.0, "Requests per second to the API server; 0: no limit."),
            Flag("kube-api-burst", FlagType.INTEGER, 0, "Burst of requests to the API server; 0: as --kube-api-qps."),
        ),
        "Leader election": leader_election_flags(lease_name),
        "Health and metrics": (
            *serving_flags(port),
            Flag(
                "authentication-kubeconfig",
                FlagType.FILE,
                "",
                "The kubeconfig for TokenReviews. Default: that of the component.",
            ),
            Flag(
                "authorization-kubeconfig",
                FlagType.FILE,
                "",
                "The kubeconfig for SubjectAccessReviews. Default: that of the component.",
            ),
        ),
    }


CONTROLLERS_FLAGS: FlagSections = {
    "Controllers": (
        Flag("controllers", FlagType.TEXT, "*", "Names, *, or -NAME for all but that."),
        Flag(
            "root-ca-file",
            FlagType.FILE,
            "",
            "The CA certificates of the ConfigMaps kube-root-ca.crt. Default: those of the kubeconfig.",
        ),
    ),
    **_component_flags(
        Flag("secure-port", FlagType.PORT, 10_257, "The port of health and metrics; 0: none."),
        "kube-controller-manager",
    ),
    "kube-controller-manager": (*controller_flags(KUBERNETES_DEFAULTS), *IDLE_FLAGS),
}
NODES_FLAGS = _component_flags(
    Flag(
        "kubelet-port", FlagType.PORT, 10_250, "The port of health, metrics, and logs with --runtime process; 0: any."
    ),
    lease_name="",
)


_LOGS = ("is_verbose", "log_format")


class ControllersCommand(SectionedCommand):
    """`mooring controllers`."""

    sections: ClassVar = {**attributes_by_section(CONTROLLERS_FLAGS), "Logs": _LOGS}


class NodesCommand(SectionedCommand):
    """`mooring nodes`."""

    sections: ClassVar = {
        "Nodes": [
            *("count", "name_prefix", "cpu", "memory", "pods", "zones", "node_templates"),
            *("runtime", "pod_users", "data_dir", "stages", "routine_events", "node_lease_s"),
        ],
        **attributes_by_section(NODES_FLAGS),
        "Logs": _LOGS,
    }


@click.command(
    cls=ControllersCommand, epilog="It also takes the flags of kube-controller-manager; docs/up.md lists them."
)
@flag_options(CONTROLLERS_FLAGS)
@log_options
def controllers(controllers: str, root_ca_file: str, **flags: Any) -> None:
    """Run the controllers against any API server.

    They create the pods of Deployments and other workloads, detect lost nodes, and collect garbage.
    """
    with loading():
        from mooring.cli.standalone import run  # imports the controllers and kubelets: not for `mooring --help`

        end_loading()

    options = run.standalone_options(flags, port=flags["secure_port"])
    settings = controller_settings(flags)
    run.start_logging(options)
    warn_of_flags_without_effect(IDLE_FLAGS, {flag.name: flags[flag.attribute] for flag in IDLE_FLAGS})
    run.run_controllers(options, settings, names_in(controllers), root_ca_file)


@click.command(cls=NodesCommand, short_help="Run nodes against any API server.")
@flag_options(NODES_FLAGS)
@log_options
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

    options = run.standalone_options(flags, port=flags["kubelet_port"])
    run.start_logging(options)
    shape = shape_options(flags)
    templates_only = shape.node_templates is not None and count is None
    node_count = count if count is not None else 1 if runtime == PROCESS else 0 if templates_only else SIMULATED_COUNT
    shapes = node_shapes(shape, node_count, runtime, name_prefix)
    if runtime == PROCESS:
        run.run_real_nodes(options, count=node_count, directory=data_dir, pod_users=pod_users or "")
        return
    run.run_nodes(
        options,
        count=node_count,
        name_prefix=name_prefix,
        shapes=shapes,
        node_lease_s=node_lease_s,
        routine_events=routine_events,
        stages=stages,
    )
