"""The options of `mooring up`, and those that it shares with `mooring controllers` and `mooring nodes`.

Importing this module imports click and the settings of the controllers, nothing else: `mooring --help` pays for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import click

from mooring.cli.errors import input_error
from mooring.cli.flags import (
    Flag,
    FlagType,
    SectionedCommand,
    duration_option,
    flag_options,
    names_in,
    switch_option,
    with_options,
)
from mooring.controllers.settings import IN_PROCESS_DEFAULTS, ControllerSettings
from mooring.kit.logs import FORMATS
from mooring.kit.memory import loading

SIMULATED, PROCESS = "simulated", "process"
_COMPONENTS = ("scheduler", "controllers", "nodes")
_PATH = click.Path(path_type=Path)
EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def controller_flags(defaults: ControllerSettings) -> list[Flag]:
    """The flags of kube-controller-manager that have an effect. They are too many for the help."""
    types: dict[type, FlagType] = {bool: FlagType.SWITCH, int: FlagType.INTEGER, float: FlagType.NUMBER}
    flags = []
    for field in fields(ControllerSettings):
        default = getattr(defaults, field.name)
        flag_type = FlagType.DURATION if field.name.endswith("_s") else types[type(default)]
        flags.append(Flag(field.name.removesuffix("_s").replace("_", "-"), flag_type, default, ""))
    return flags


def controller_settings(flags: dict[str, Any]) -> ControllerSettings:
    """Takes the settings out of the flags. Raises `InputError`."""
    settings = {field.name: flags.pop(field.name.removesuffix("_s")) for field in fields(ControllerSettings)}
    for name, value in settings.items():
        if name.endswith("_s") and value < 0:
            flag = name.removesuffix("_s").replace("_", "-")
            raise input_error(f"--{flag}: found {value:g}s, wanted a duration that is not negative")
    return ControllerSettings(**settings)


node_lease_option = click.option(
    "--node-lease-duration-seconds",
    "node_lease_s",
    default=40,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="The duration of a node lease. It is renewed four times in that time.",
)
runtime_option = click.option(
    "--runtime",
    default=SIMULATED,
    show_default=True,
    type=click.Choice((SIMULATED, PROCESS)),
    help="Nodes are hollow and simulate their pods, or pods are commands that run on this machine.",
)
pod_users_option = click.option(
    "--pod-users",
    type=click.Choice(("separate", "host")),
    help="With --runtime process: pods have users of their own, or are your user and its rights. "
    "[default: separate for root, else host]",
)
routine_events_option = switch_option(
    "--routine-events",
    help="Record Pulled, Created, Started and Killing events. [default: with fewer than 500 nodes]",
)
stages_option = click.option(
    "--stages", type=EXISTING_FILE, help="Stage sets of containers on hollow nodes, as YAML: docs/kubelets.md."
)


hollow_node_options = with_options(
    click.option("--zones", help="Zones, assigned to the nodes in turn. [default: zone-a,zone-b,zone-c]"),
    click.option("--cpu", help="CPUs of each hollow node. [default: 32]"),
    click.option("--memory", help="Memory of each hollow node. [default: 256Gi]"),
    click.option(
        "--pods", type=click.IntRange(0), metavar="N", help="The maximum number of pods of each. [default: 110]"
    ),
    click.option(
        "--node-templates",
        type=EXISTING_FILE,
        help="Further hollow nodes of several kinds, as YAML: docs/kubelets.md.",
    ),
)
"""The flags that `ShapeOptions` has fields for."""


log_options = with_options(
    click.option("-v", "--verbose", "is_verbose", is_flag=True, help="Log more: each decision, rejection and binding."),
    click.option(
        "--logging-format",
        "log_format",
        default=FORMATS[0],
        show_default=True,
        type=click.Choice(FORMATS),
        help="The format of log lines.",
    ),
)
"""`-v` and `--logging-format`."""


class UpCommand(SectionedCommand):
    """`mooring up`."""

    sections: ClassVar = {
        "Objects": ["manifests", "dumps", "data_dir", "ephemeral", "store_url"],
        "Background": ["is_detached", "wait_s", "name"],
        "Nodes": [
            *("nodes", "cpu", "memory", "pods", "zones", "node_templates", "prunes_nodes"),
            *("runtime", "pod_users", "stages", "routine_events", "has_default_storage_class", "node_lease_s"),
        ],
        "Scheduler and controllers": [
            *("scheduler_file", "plugins", "record", "record_size_max", "controllers", "without", "processes"),
        ],
        "API server": [
            *("port", "host", "kubeconfig", "may_overwrite_kubeconfig", "token", "token_file"),
            *("token_auth_file", "is_anonymous_allowed", "disabled_admission_plugins", "event_ttl_s"),
        ],
        "Logs": ["is_verbose", "log_format"],
    }


@click.command(cls=UpCommand, epilog="It also takes the flags of kube-controller-manager; docs/up.md lists them.")
@click.option(
    "--port",
    default=6_443,
    show_default=True,
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="The port to listen on; 0: any.",
)
@click.option("--bind-address", "host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--data-dir", type=_PATH, help="The directory of the cluster. [default: ~/.local/share/mooring]")
@click.option("--ephemeral", is_flag=True, help="Keep the cluster in memory only.")
@click.option("--store", "store_url", default="", help="Keep the objects on an etcd: etcd://host:port[,host:port].")
@click.option(
    "--kubeconfig",
    type=_PATH,
    help="Where to write the kubeconfig. [default: in the data directory; with --ephemeral in a private one]",
)
@click.option(
    "--overwrite-kubeconfig",
    "may_overwrite_kubeconfig",
    is_flag=True,
    help="Overwrite a kubeconfig that mooring did not write.",
)
@click.option(
    "--nodes", type=click.IntRange(0), metavar="N", help="How many nodes to add. [default: 0; 1 with --runtime process]"
)
@hollow_node_options
@click.option(
    "--prune-nodes",
    "prunes_nodes",
    is_flag=True,
    help="Delete nodes that an earlier start added and this one does not.",
)
@runtime_option
@pod_users_option
@node_lease_option
@routine_events_option
@switch_option(
    "--default-storage-class",
    "has_default_storage_class",
    default=True,
    help="Create a StorageClass `standard` that provisions directories as volumes. [default: true]",
)
@stages_option
@click.option("--without", default="", help="Components that do not run: scheduler,controllers,nodes.")
@click.option(
    "--token",
    default="",
    envvar="MOORING_TOKEN",
    show_envvar=True,
    help="A fixed token of the administrator, for scripts. The process list shows it: --token-file does not.",
)
@click.option("--token-file", type=EXISTING_FILE, help="A file with the token of the administrator.")
@click.option("--token-auth-file", type=EXISTING_FILE, help="More users: CSV of token,user,uid,groups.")
@click.option(
    "--anonymous-auth", "is_anonymous_allowed", is_flag=True, help="Allow anonymous requests, as system:anonymous."
)
@click.option(
    "--disable-admission-plugins",
    "disabled_admission_plugins",
    help="Admission plugins that do not run. [default: none; ServiceAccount with --without controllers]",
)
@duration_option(
    "--event-ttl",
    "event_ttl_s",
    default="1h",
    help="How long an event is kept after its last update; 0: for ever.",
)
@click.option("--config", "scheduler_file", type=EXISTING_FILE, help="A KubeSchedulerConfiguration for the scheduler.")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE|module:Class",
    help="A plugin of the scheduler: a Python file, or an importable class. May be repeated.",
)
@click.option(
    "--record",
    type=_PATH,
    metavar="FILE",
    help="Record what the scheduler sees and does, for mooring simulate --replay.",
)
@click.option("--record-size-max", default="1Gi", show_default=True, help="The size at which a recording ends.")
@click.option(
    "--controllers", default="*", show_default=True, help="Which controllers: names, *, or -NAME for all but that."
)
@click.option(
    "--processes",
    type=click.IntRange(1, 2),
    metavar="N",
    help="With 2, scheduler and controllers have their own. [default: 1; 2 from 500 nodes on, given two cores]",
)
@click.option(
    "-f",
    "--filename",
    "manifests",
    multiple=True,
    metavar="FILE",
    help="Objects to create once it is up: a file, a folder, or - for standard input. May be repeated.",
)
@click.option(
    "--from",
    "dumps",
    multiple=True,
    metavar="DUMP",
    help="Clone a cluster: the output of kubectl get -A -o json|yaml, as a file, a folder, or - for standard input. "
    "May be repeated.",
)
@click.option("--name", default="", help="The name for mooring status and down. [default: mooring, mooring-2, …]")
@click.option(
    "-d", "--detach", "is_detached", is_flag=True, help="Run in the background; return when the cluster is ready."
)
@duration_option(
    "--wait",
    "wait_s",
    help="With --detach: wait that long for the workloads of -f to be available.",
)
@log_options
@flag_options({"kube-controller-manager": controller_flags(IN_PROCESS_DEFAULTS)})
def up(
    data_dir: Path | None,
    ephemeral: bool,
    nodes: int | None,
    pod_users: str | None,
    without: str,
    token: str,
    token_file: Path | None,
    disabled_admission_plugins: str | None,
    controllers: str,
    **flags: Any,
) -> None:
    """Start a cluster that kubectl talks to.

    Ctrl-C stops it. The next start continues with the objects in the data directory.

    \b
      mooring up --nodes 9 -f examples/manifests/demo.yaml
      mooring up --detach --ephemeral --port 0 --nodes 1000
      kubectl get nodes,pods -A -o json | mooring up --ephemeral --from -
    """
    _check_options(data_dir, ephemeral, flags)
    settings = controller_settings(flags)
    with loading():
        from mooring.cli.up import run  # imports the API server: not for `mooring --help`
        from mooring.cli.up.settings import UpOptions
        from mooring.cli.up.shapes import shape_options

        shapes = shape_options(flags)
        run.run_until_stopped(
            UpOptions(
                directory=None if ephemeral else data_dir or _default_directory(),
                nodes=nodes if nodes is not None else int(flags["runtime"] == PROCESS),
                shapes=shapes,
                pod_users=pod_users or "",
                without=_components(without),
                token=_token(token, token_file),
                disabled_admission_plugins=(
                    frozenset(names_in(disabled_admission_plugins)) if disabled_admission_plugins is not None else None
                ),
                controllers=settings,
                enabled_controllers=names_in(controllers),
                **flags,
            )
        )


def _check_options(data_dir: Path | None, ephemeral: bool, flags: Mapping[str, Any]) -> None:
    if ephemeral and data_dir is not None:
        raise input_error("--ephemeral and --data-dir contradict each other: leave one out")
    if ephemeral and flags["store_url"]:
        raise input_error("--ephemeral and --store contradict each other: leave one out")
    if flags["wait_s"] is not None and not flags["is_detached"]:
        raise input_error("--wait needs --detach: in the foreground the progress is printed")
    if flags["dumps"] and flags["runtime"] == PROCESS:
        raise input_error("--from and --runtime process contradict each other: cloned nodes are simulated")
    if flags["event_ttl_s"] < 0:
        raise input_error("--event-ttl: wanted a duration that is not negative")


def _token(token: str, file: Path | None) -> str:
    if file is None:
        return token
    if token:
        raise input_error("--token (or $MOORING_TOKEN) and --token-file contradict each other")
    try:
        found = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise input_error(f"cannot be read as the token of the administrator: {error}", str(file)) from None
    if not found or not found.isprintable() or " " in found:
        raise input_error("holds no token; wanted one line without spaces", str(file))
    return found


def _components(text: str) -> frozenset[str]:
    names = frozenset(names_in(text))
    unknown = sorted(names - set(_COMPONENTS))
    if unknown:
        choices = ", ".join(_COMPONENTS)
        raise input_error(f"--without {unknown[0]}: there is no such component; choose from {choices}")
    return names


def _default_directory() -> Path:
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "mooring"
