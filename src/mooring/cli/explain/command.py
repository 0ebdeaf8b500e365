"""The `mooring explain` command and its options.

Prints a screen, JSON or YAML on standard output, and notes about the input on standard error.

 1. Exit code 0 means that everything was decided, even if pods go nowhere; with `--exit-code` those make it 1.
 2. Everything but click is imported when the command runs: `mooring --help` stays fast.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mooring.cli.options import config_option, connection_options, note, output_option, plugin_option, seed_option

if TYPE_CHECKING:
    from mooring.cli.explain.report import Report

EXIT_UNSCHEDULABLE = 1
NODES_DEFAULT = 5


def _node_limit(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """A number of nodes; None for all of them."""
    if value == "all":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is neither a number from 1 on nor the word all", ctx, param)
    return int(value)


def _time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    from mooring.kit.clock import TimestampError, parse_rfc3339

    if value is None:
        return None
    try:
        return parse_rfc3339(value)
    except TimestampError as error:
        raise click.BadParameter(str(error), ctx, param) from None


HELP = """Decides for the pending pods of a cluster as kube-scheduler would, and shows for each where it goes and why;
or why it goes nowhere, which nodes are nearest and what is missing there, and the pods it would preempt.

Without -f it reads the cluster of your kubeconfig ($KUBECONFIG, ~/.kube/config) and changes nothing there. With -f
it reads files: manifests, whose workloads are expanded into pods, or a dump. With -f and --kubeconfig or --context
the files are added to the cluster. With PODs only those are shown.

\b
  mooring explain                             all pending pods of the cluster
  mooring explain shop/web-1                  this pod
  mooring explain --context prod -f web.yaml  where would this go?
  mooring explain -f cluster.json             a dump, made by:

\b
  kubectl get -A -o json nodes,pods,namespaces,services,\\
  replicationcontrollers,replicasets,statefulsets,poddisruptionbudgets,\\
  priorityclasses,persistentvolumeclaims,persistentvolumes,storageclasses,\\
  csinodes,csidrivers,csistoragecapacities,volumeattachments,resourceclaims,\\
  resourceclaimtemplates,resourceslices,deviceclasses > cluster.json
"""


@click.command("explain", help=HELP, short_help="Say where pending pods go, and why.")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILE",
    help="Manifests or a dump of a cluster: a file, a folder, or - for standard input. May be repeated.",
)
@connection_options
@config_option
@plugin_option
@output_option("text", "json", "yaml")
@click.option(
    "--nodes",
    "node_limit",
    metavar="N|all",
    callback=_node_limit,
    default=str(NODES_DEFAULT),
    show_default=True,
    help="How many nodes to show for each pod.",
)
@click.option("--alone", "ignores_others", is_flag=True, help="Decide for each POD as if no other pod were waiting.")
@click.option(
    "--now", "now_s", metavar="TIME", callback=_time, help="Decide as of this time (RFC 3339). Default: the clock's."
)
@seed_option
@click.option("--exit-code", is_flag=True, help="Exit with 1 if a pod that is shown goes nowhere.")
@click.argument("pods", metavar="[[NAMESPACE/]POD]...", nargs=-1)
@click.pass_context
def explain(
    ctx: click.Context, /, output: str, exit_code: bool, ignores_others: bool, pods: tuple[str, ...], **options: Any
) -> None:
    if ignores_others and not pods:
        raise click.UsageError("--alone needs a POD")

    from mooring.cli.explain.run import ExplainRequest, run_explain
    from mooring.kit.clock import SystemClock

    request = ExplainRequest(pods=pods, ignores_others=ignores_others, **options)
    report = run_explain(request, sys.stdin.buffer, note, SystemClock())
    _print(report, output)
    if exit_code and report.has_unplaced_pods:
        ctx.exit(EXIT_UNSCHEDULABLE)


def _print(report: Report, output: str) -> None:
    match output:
        case "json":
            from mooring.cli.explain.report import as_json

            click.echo(as_json(report), nl=False)
        case "yaml":
            from mooring.cli.explain.report import as_yaml

            click.echo(as_yaml(report), nl=False)
        case _:
            from mooring.cli.explain.text import as_lines
            from mooring.cli.terminal import standard_output

            for line in as_lines(report, standard_output()):
                click.echo(line)
