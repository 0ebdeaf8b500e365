"""Options that several commands share, with one name and one help each.

    commands that ask about a cluster                         decorators
    `mooring scheduler`, `mooring controllers`, `mooring nodes`    flags of Kubernetes' components

Imports click only: `mooring --help` stays fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import click

from mooring.cli.flags import Decorated, Flag, FlagType, with_options


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """The secure port of a scheduler."""

    url: str
    """Empty: requests go through the API server of the kubeconfig."""
    authority_file: str = ""
    """Empty: the authority of the kubeconfig."""
    is_unverified: bool = False


cluster_option = click.option(
    "--cluster",
    "files",
    multiple=True,
    metavar="FILE",
    help="A dump of the cluster: a file, a folder, or - for standard input. May be repeated.",
)
config_option = click.option(
    "--config", metavar="FILE", help="A KubeSchedulerConfiguration. Default: that of kube-scheduler."
)
plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE|module:Class",
    help="A plugin of the scheduler: a Python file, or an importable class. A plugin that the configuration names is "
    "enabled as it says; any other at all its extension points in the default profile, with weight 1. May be repeated.",
)
seed_option = click.option(
    "--seed", type=int, metavar="N", default=1, show_default=True, help="Decides where nodes are equally good."
)


def output_option(*formats: str) -> Callable[[Decorated], Decorated]:
    """`-o`; the first format is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="The output format."
    )


connection_options = with_options(
    click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="The kubeconfig of the cluster. Default: $KUBECONFIG, ~/.kube/config.",
    ),
    click.option("--context", default="", metavar="NAME", help="The context of the kubeconfig."),
)
"""`--kubeconfig` and `--context`."""


KUBECONFIG = Flag(
    "kubeconfig",
    FlagType.FILE,
    "",
    "The kubeconfig. Default: $KUBECONFIG, the service account of the pod, ~/.kube/config.",
)
MASTER = Flag("master", FlagType.TEXT, "", "The address of the API server; overrides the kubeconfig.")


def serving_flags(port: Flag) -> tuple[Flag, ...]:
    """The secure port of a component."""
    return (
        Flag("bind-address", FlagType.ADDRESS, "0.0.0.0", "The address of the secure port."),
        port,
        Flag(
            "cert-dir",
            FlagType.FILE,
            "",
            "The directory of the self-signed certificate; empty: a new one at each start.",
        ),
        Flag("tls-cert-file", FlagType.FILE, "", "The serving certificate, with its chain."),
        Flag("tls-private-key-file", FlagType.FILE, "", "The key of the serving certificate."),
    )


def leader_election_flags(lease_name: str) -> tuple[Flag, ...]:
    return (
        Flag("leader-elect", FlagType.SWITCH, True, "Run only while holding the lease."),
        Flag(
            "leader-elect-lease-duration",
            FlagType.DURATION,
            15.0,
            "How long others wait for a leader that does not renew.",
        ),
        Flag(
            "leader-elect-renew-deadline",
            FlagType.DURATION,
            10.0,
            "How long a leader continues without renewing its lease.",
        ),
        Flag("leader-elect-resource-name", FlagType.TEXT, lease_name, "The name of the lease."),
        Flag("leader-elect-resource-namespace", FlagType.TEXT, "kube-system", "The namespace of the lease."),
        Flag("leader-elect-retry-period", FlagType.DURATION, 2.0, "The interval of renewing or checking the lease."),
    )


def note(text: str) -> None:
    """Prints a note about the input on standard error."""
    click.echo(f"mooring: note: {text}", err=True)
