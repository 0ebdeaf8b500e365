"""Options that several commands share, with one name and one help each: those of commands that ask about a cluster.

Applied as decorators. Imports click only: `mooring --help` stays fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import click

from mooring.cli.flags import Decorated, with_options


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


def note(text: str) -> None:
    """Prints a note about the input on standard error."""
    click.echo(f"mooring: note: {text}", err=True)
