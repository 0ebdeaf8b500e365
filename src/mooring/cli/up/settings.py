"""The options of `mooring up`, checked, as the settings of a cluster.

Everything that can be wrong with an option is found here, before anything starts, and raised as an `InputError`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

from mooring.apiserver.access.authentication import TokenFileError, parse_token_file
from mooring.cli.errors import input_error
from mooring.cli.flags import size_bytes
from mooring.cli.up.shapes import ShapeOptions, node_shapes
from mooring.cluster.settings import (
    ROUTINE_EVENTS_NODES_MAX,
    ClusterSettings,
    ControlPlaneSettings,
    NodeShapes,
    processes_for,
)
from mooring.controllers.settings import ControllerSettings, SettingError
from mooring.serving.users import User

KUBECONFIG_NAME = "kubeconfig"
ENTRY_POINT_GROUP = "mooring.plugins"
"""As in `scheduler.framework.loading`, which most starts need not import before the server answers."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The command line."""

    port: int
    host: str
    directory: Path | None
    """None: the cluster is kept in memory."""
    store_url: str
    kubeconfig: Path | None
    """None: in the data directory, or in a private folder of the process if there is none."""
    may_overwrite_kubeconfig: bool
    nodes: int
    shapes: ShapeOptions
    prunes_nodes: bool
    runtime: str
    pod_users: str
    node_lease_s: int
    routine_events: bool | None
    """None: with fewer than `ROUTINE_EVENTS_NODES_MAX` nodes."""
    has_default_storage_class: bool
    stages: Path | None
    without: frozenset[str]
    token: str = field(repr=False)
    token_auth_file: Path | None
    is_anonymous_allowed: bool
    disabled_admission_plugins: frozenset[str] | None
    """None: the flag was not given."""
    event_ttl_s: float
    scheduler_file: Path | None
    plugins: tuple[str, ...]
    record: Path | None
    record_size_max: str
    controllers: ControllerSettings
    enabled_controllers: tuple[str, ...]
    processes: int | None
    """None: by the number of nodes and cores."""
    manifests: tuple[str, ...]
    dumps: tuple[str, ...]
    name: str
    """The name in the registry of running clusters; empty: any free one."""
    is_detached: bool
    wait_s: float | None
    """How long a detached start waits for the workloads of `-f`; None: not at all."""
    is_verbose: bool
    log_format: str


def cluster_settings(options: UpOptions, nodes_cloned: int) -> ClusterSettings:
    """Raises `InputError`."""
    _check_controllers(options.enabled_controllers)
    _check_store(options.store_url)
    shapes = node_shapes(options.shapes, options.nodes, options.runtime)
    _check_node_lease(options)
    kubeconfig = options.kubeconfig
    if kubeconfig is None and options.directory is not None:
        kubeconfig = options.directory / KUBECONFIG_NAME
    return ClusterSettings(
        data_directory=options.directory,
        store_url=options.store_url,
        host=options.host,
        port=options.port,
        kubeconfig=kubeconfig.absolute() if kubeconfig is not None else None,
        may_overwrite_kubeconfig=options.may_overwrite_kubeconfig,
        token=options.token,
        users=_users(options.token_auth_file),
        is_anonymous_allowed=options.is_anonymous_allowed,
        disabled_admission_plugins=options.disabled_admission_plugins,
        event_ttl_s=options.event_ttl_s,
        without=options.without,
        nodes=options.nodes,
        shapes=shapes,
        prunes_nodes=options.prunes_nodes,
        runtime=options.runtime,
        pod_users=options.pod_users,
        has_default_storage_class=options.has_default_storage_class,
        node_lease_s=options.node_lease_s,
        routine_events=(
            options.routine_events
            if options.routine_events is not None
            else options.nodes + nodes_cloned < ROUTINE_EVENTS_NODES_MAX
        ),
        stages=_stage_sets(options.stages),
        control_plane=ControlPlaneSettings(
            _scheduler_configuration(options.scheduler_file, options.plugins, is_recorded=options.record is not None),
            options.controllers,
            options.enabled_controllers,
            plugins=options.plugins,
            record=_record_file(options.record),
            record_bytes_max=size_bytes("record-size-max", options.record_size_max),
            log_format=options.log_format,
        ),
        processes=options.processes or processes_for(_node_count(options.nodes, shapes) + nodes_cloned),
    )


def _node_count(plain: int, shapes: NodeShapes) -> int:
    return len(shapes.kubelet_settings(plain).node_names()) if shapes.templates else plain


def _check_controllers(names: tuple[str, ...]) -> None:
    if names == ("*",):
        return  # the usual case, which need not import the controllers now
    from mooring.controllers.manager import CONTROLLERS, check_names

    try:
        check_names(names, tuple(CONTROLLERS))
    except SettingError as error:
        raise input_error(f"--controllers: {error}") from None


def _check_store(url: str) -> None:
    if not url:
        return
    from mooring.store.etcd.errors import EtcdAddressWrong  # most clusters need no etcd
    from mooring.store.etcd.settings import parse_address

    try:
        parse_address(url)
    except EtcdAddressWrong as error:
        raise input_error(f"--store: {error}") from None


def _check_node_lease(options: UpOptions) -> None:
    """A node that renews its lease later than the grace period allows would be NotReady most of the time."""
    grace_s = options.controllers.node_monitor_grace_period_s
    if options.node_lease_s < grace_s:
        return  # the usual case, which need not import the kubelet now
    from mooring.kubelet.settings import LEASE_RENEWED_SHARE

    renewed_s = options.node_lease_s * LEASE_RENEWED_SHARE
    if renewed_s >= grace_s and not {"controllers", "nodes"} & options.without:
        raise input_error(
            f"--node-lease-duration-seconds {options.node_lease_s}: nodes renew their lease every {renewed_s:g} s, but "
            f"--node-monitor-grace-period is {grace_s:g} s; wanted less than {grace_s / LEASE_RENEWED_SHARE:g}, "
            "or a longer grace period"
        )


def _stage_sets(file: Path | None) -> str:
    if file is None:
        return ""
    from mooring.cli.standalone.run import checked_stages  # imports the kubelet

    return checked_stages(file)


def _users(path: Path | None) -> dict[str, User]:
    if path is None:
        return {}
    try:
        return parse_token_file(path.read_text(encoding="utf-8"), str(path))
    except TokenFileError as error:
        raise input_error(str(error)) from None
    except UnicodeDecodeError:
        raise input_error("is not UTF-8 text; CSV of token,user,uid,groups is wanted", str(path)) from None
    except OSError as error:
        raise input_error(f"cannot be read: {error.strerror}", str(path)) from None


def _record_file(path: Path | None) -> str:
    if path is None:
        return ""
    if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
        raise input_error("--record: cannot be written", str(path))
    return str(path.absolute())


def _scheduler_configuration(
    path: Path | None, plugins: tuple[str, ...], *, is_recorded: bool = False
) -> object | None:
    """The content of the file. Raises `InputError` for it and for plugins, also those of installed packages."""
    if path is None and not plugins and not entry_points(group=ENTRY_POINT_GROUP):
        return None
    # imports the scheduler
    from mooring.cli.scheduler.configuration import check_recordable, checked_configuration, read_configuration

    file = str(path) if path is not None else ""
    document = read_configuration(file) if file else None
    configuration, _ = checked_configuration(file, document, plugins)
    if is_recorded:
        check_recordable(configuration)
    return document.data if document is not None else None
