"""The `mooring explain` command and its options.

Prints a screen, JSON or YAML on standard output, and notes about the input on standard error.

 1. Exit code 0 means that everything was decided, even if pods go nowhere; with `--exit-code` those make it 1.
 2. Everything but click is imported when the command runs: `mooring --help` stays fast.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mooring.cli.explain.report import Report
    from mooring.cli.layout import Paper

EXIT_UNSCHEDULABLE = 1
NODES_DEFAULT = 5
WIDTH_MIN = 60
WIDTH_MAX = 120
"""Wider lines are hard to read."""


def _node_limit(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """A number of nodes; None for all of them."""
    if value == "all":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is neither a number from 1 on nor the word all", ctx, param)
    return int(value)


@click.command("explain", short_help="Say where pending pods go, and why.")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="Manifests or a dump of a cluster: a file, a folder, or - for standard input. May be repeated.",
)
@click.option("--config", metavar="FILE", help="A KubeSchedulerConfiguration. Default: that of kube-scheduler.")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE|CLASS",
    help="A Python file with plugins of your own, or package.module:Class. A plugin that --config speaks of is enabled "
    "where it says so; any other at all its points in the default profile, with weight 1. May be repeated.",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True, help="The format."
)
@click.option(
    "--nodes",
    "node_limit",
    metavar="N|all",
    callback=_node_limit,
    default=str(NODES_DEFAULT),
    show_default=True,
    help="How many nodes to show for each pod.",
)
@click.option("--alone", is_flag=True, help="Decide for POD as if no other pod were waiting.")
@click.option("--seed", type=int, default=1, show_default=True, help="Decides where nodes are equally good.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if a pod that is shown goes nowhere.")
@click.argument("pod", required=False)
@click.pass_context
def explain(
    ctx: click.Context,
    files: tuple[str, ...],
    config: str | None,
    plugins: tuple[str, ...],
    output: str,
    node_limit: int | None,
    alone: bool,
    seed: int,
    exit_code: bool,
    pod: str | None,
) -> None:
    """Decides for the pending pods of a cluster as kube-scheduler would, and shows for each where it goes and why; or
    why it goes nowhere, which nodes are nearest and what is missing there, and whom it would preempt.

    POD is a name or NAMESPACE/NAME: only that pod is shown.

    \b
      kubectl get nodes,pods,svc,rs,sts,pdb,pc,ns -A -o yaml > cluster.yaml
      mooring explain -f cluster.yaml
      mooring explain -f cluster.yaml -f new-pod.yaml shop/web-1
    """
    if alone and pod is None:
        raise click.UsageError("--alone needs a POD")

    from mooring.cli.explain.run import ExplainRequest, run_explain

    report = run_explain(ExplainRequest(files, config, pod, alone, node_limit, seed, plugins), sys.stdin.buffer, _note)
    _print(report, output)
    if exit_code and report.is_anything_nowhere:
        ctx.exit(EXIT_UNSCHEDULABLE)


def _print(report: Report, output: str) -> None:
    match output:
        case "json":
            from mooring.cli.explain.data import as_json

            click.echo(as_json(report), nl=False)
        case "yaml":
            from mooring.cli.explain.data import as_yaml

            click.echo(as_yaml(report), nl=False)
        case _:
            from mooring.cli.explain.text import as_lines

            for line in as_lines(report, _paper()):
                click.echo(line)


def _paper() -> Paper:
    from mooring.cli.layout import Paper

    width = min(max(shutil.get_terminal_size((80, 24)).columns, WIDTH_MIN), WIDTH_MAX)
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return Paper(width, coloured)


def _note(text: str) -> None:
    click.echo(f"mooring: note: {text}", err=True)
