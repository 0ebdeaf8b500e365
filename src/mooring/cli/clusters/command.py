"""The commands `mooring status` and `mooring down`."""

from __future__ import annotations

import click

from mooring.cli.flags import duration_option
from mooring.cli.options import output_option


@click.command(short_help="Show the running clusters.")
@click.argument("name", default="")
@output_option("text", "json")
def status(name: str, output: str) -> None:
    """Shows the clusters that `mooring up` runs: address, nodes, pods, kubeconfig.

    The exit code is 1 if there is none, or none of that NAME.
    """
    from mooring.cli.clusters.run import show_status  # imports the client: not for `mooring --help`

    click.get_current_context().exit(show_status(name, output))


@click.command(short_help="Stop a running cluster.")
@click.argument("name", default="")
@click.option("--all", "is_all", is_flag=True, help="Stop all clusters.")
@duration_option("--timeout", "timeout_s", default="30s", help="How long to wait for the end.")
def down(name: str, is_all: bool, timeout_s: float) -> None:
    """Stops the cluster of that NAME, or the only one, and waits until it has ended.

    Objects in a data directory stay: the next `mooring up` continues with them.
    The exit code is 1 if a cluster does not end in time.
    """
    from mooring.cli.clusters.run import stop_clusters

    click.get_current_context().exit(stop_clusters(name, is_all=is_all, timeout_s=timeout_s))
