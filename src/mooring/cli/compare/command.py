"""The `mooring compare` command and its options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from mooring.cli.options import cluster_option, connection_options, note, output_option, plugin_option

HELP = """Places the pods of a cluster under several scheduler configurations, and shows the results side by side.
Nothing is changed.

\b
  mooring compare --config default --config packing.yaml
  mooring compare --cluster dump.json --config default --config packing.yaml
  mooring compare --config a.yaml --config b.yaml --pods all --seeds 5 \\
      --plot nodes.svg

With --pods pending (the default) the pending pods are placed on the cluster as it is. With --pods all every pod that a
controller owns is placed anew, in the order of creation. "default" stands for kube-scheduler's configuration.
"""


@click.command("compare", help=HELP, short_help="Place the pods under several configurations.")
@cluster_option
@connection_options
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="FILE|default",
    help="A KubeSchedulerConfiguration, or the word default. Give at least two.",
)
@plugin_option
@click.option(
    "--pods", type=click.Choice(["pending", "all"]), default="pending", show_default=True, help="The pods to place."
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    metavar="N",
    default=3,
    show_default=True,
    help="How often each configuration is run, with another seed each time.",
)
@output_option("table", "json", "yaml")
@click.option("--plot", default="", metavar="FILE.svg", help="Draw a bar for each node, configurations side by side.")
def compare(configs: tuple[str, ...], pods: str, output: str, plot: str, **inputs: Any) -> None:
    if len(configs) < 2:
        raise click.UsageError("compare needs at least two --config; one of them may be the word default")
    if len(set(configs)) < len(configs):
        raise click.UsageError("two --config are the same file")

    from mooring.cli.compare.run import CompareOptions, as_data, as_json, as_lines, as_svg, run_compare
    from mooring.cli.terminal import yaml_text
    from mooring.kit.clock import SystemClock

    options = CompareOptions(configs=configs, places_all=pods == "all", **inputs)
    comparison = run_compare(options, sys.stdin.buffer, note, SystemClock())
    if output == "json":
        click.echo(as_json(comparison), nl=False)
    elif output == "yaml":
        click.echo(yaml_text(as_data(comparison)), nl=False)
    else:
        for line in as_lines(comparison):
            click.echo(line)
    if plot:
        try:
            Path(plot).write_text(as_svg(comparison), encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--plot {plot}: {error.strerror}") from error
        note(f"wrote {plot}")
