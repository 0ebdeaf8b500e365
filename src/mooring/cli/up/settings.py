"""The options of `mooring up`, checked, as the settings of a cluster.

Everything that can be wrong with an option is found here, before anything starts, and raised as an `InputError`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mooring.apiserver.access.authentication import TokenFileError, parse_token_file
from mooring.apiserver.access.users import User
from mooring.cli.errors import InputError, Problem, input_error
from mooring.cluster.settings import ROUTINE_EVENTS_NODES_MAX, ClusterSettings, ControlPlaneSettings, processes_for
from mooring.controllers.settings import ControllerSettings, SettingError
from mooring.kit.entropy import system_entropy

KUBECONFIG_NAME = "kubeconfig"


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
    runtime: str
    pod_users: str
    node_lease_s: int
    routine_events: bool | None
    """None: with fewer than `ROUTINE_EVENTS_NODES_MAX` nodes."""
    has_default_storage_class: bool
    stages: Path | None
    without: frozenset[str]
    token: str = field(repr=False)
    token_file: Path | None
    is_anonymous_allowed: bool
    disabled_admission_plugins: frozenset[str] | None
    """None: the flag was not given."""
    event_ttl_s: float
    scheduler_file: Path | None
    controllers: ControllerSettings
    enabled_controllers: tuple[str, ...]
    processes: int | None
    """None: as many as the size of the cluster asks for."""
    manifests: tuple[str, ...]
    dumps: tuple[str, ...]
    is_verbose: bool


def cluster_settings(options: UpOptions, nodes_cloned: int) -> ClusterSettings:
    """Raises `InputError`."""
    _check_controllers(options.enabled_controllers)
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
        users=_users(options.token_file),
        is_anonymous_allowed=options.is_anonymous_allowed,
        disabled_admission_plugins=options.disabled_admission_plugins,
        event_ttl_s=options.event_ttl_s,
        without=options.without,
        nodes=options.nodes,
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
            _scheduler_configuration(options.scheduler_file), options.controllers, options.enabled_controllers
        ),
        processes=options.processes or processes_for(options.nodes + nodes_cloned),
    )


def _check_controllers(names: tuple[str, ...]) -> None:
    if names == ("*",):
        return  # the usual case, which need not import the controllers now
    from mooring.controllers.table import CONTROLLERS, check_names

    try:
        check_names(names, tuple(CONTROLLERS))
    except SettingError as error:
        raise input_error(f"--controllers: {error}") from None


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


def _scheduler_configuration(path: Path | None) -> object | None:
    if path is None:
        return None
    from mooring.cli.scheduler.configuration import read_configuration  # imports the scheduler
    from mooring.scheduler.config.types import ConfigurationError
    from mooring.scheduler.engine import Engine
    from mooring.scheduler.policy import load_configuration_or_policy

    document = read_configuration(str(path))
    try:
        configuration = load_configuration_or_policy(document.data)
        Engine(configuration, entropy=system_entropy())  # finds plugins that do not exist
    except ConfigurationError as error:
        problems = [Problem(f"{path}:{document.line_of(each.path)}", each.text) for each in error.problems]
        raise InputError(problems) from None
    except ValueError as error:
        raise input_error(str(error), str(path)) from None
    return document.data
