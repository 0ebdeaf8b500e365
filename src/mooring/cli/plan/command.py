"""The `mooring plan` command and its options.

Prints a table, JSON or YAML on standard output, and notes about the input on standard error.

 1. Exactly one question is asked: manifests (or nothing, for all pending pods), `--remove-node`, `--add-node-like`,
    `--fix`, `--capacity` or `--defragment`.
 2. Exit code 0 means that the plan was made; with `--exit-code` a pod that stays pending makes it 1.
 3. Everything but click is imported when the command runs: `mooring --help` stays fast.
"""

from __future__ import annotations

import sys

import click

from mooring.cli.options import (
    cluster_option,
    config_option,
    connection_options,
    note,
    output_option,
    plugin_option,
    seed_option,
)

EXIT_PENDING = 1

HELP = """Says what would happen, without doing it. The scheduler itself decides, on a dump or on a live cluster, and
changes nothing.

\b
  mooring plan web.yaml                          where would these pods go?
  mooring plan web.yaml --replicas 30            … with 30 replicas?
  mooring plan                                   where do the pending pods go?
  mooring plan --remove-node n7                  what if this node goes away?
  mooring plan -l pool=old                       … or all nodes of a pool?
  mooring plan web.yaml --remove-node n7         … and where do these pods go?
  mooring plan --add-node-like n1                how many nodes are missing?
  mooring plan --add-node-like n1=1.2 --add-node-like big.yaml=3.5
                                                 … and which mix is cheapest?
  mooring plan --fix default/web-1               what makes this pod fit?
  mooring plan --capacity web.yaml               how many more of it fit?
  mooring plan --defragment                      which moves empty nodes?
  mooring plan --defragment --for large.yaml     … or make room for a pod?

Without --cluster it reads the cluster of your kubeconfig ($KUBECONFIG, ~/.kube/config). With --cluster it reads a
dump; `mooring explain --help` shows how to make one.
"""


def _count(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """A number of nodes; None for auto."""
    if value == "auto":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is neither a number from 1 on nor the word auto", ctx, param)
    return int(value)


def _ratio(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    parts = value.split(":") if value else []
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise click.BadParameter(f"{value!r} is no ratio; wanted numbers from 1 on, such as 3:1", ctx, param)
    return tuple(int(part) for part in parts)


@click.command("plan", help=HELP, short_help="Say what would happen, without doing it.")
@click.argument("manifests", nargs=-1, metavar="[MANIFEST]...")
@cluster_option
@connection_options
@config_option
@plugin_option
@click.option(
    "--replicas",
    type=click.IntRange(0, 10_000),
    metavar="N",
    help="Replicas of each workload of the manifests.",
)
@click.option("--remove-node", "removed", multiple=True, metavar="NODE", help="Remove this node. May be repeated.")
@click.option("-l", "--selector", default="", metavar="SELECTOR", help="Remove the nodes with these labels.")
@click.option(
    "--add-node-like",
    "examples",
    multiple=True,
    metavar="NODE|FILE[=PRICE]",
    help="Add nodes like a node of the cluster, or like the Node in a file. Repeated: the cheapest mix.",
)
@click.option(
    "--count",
    metavar="N|auto",
    callback=_count,
    default="auto",
    show_default=True,
    help="How many nodes to add of each type; auto: as few as possible.",
)
@click.option("--fix", "fix_pod", default="", metavar="[NAMESPACE/]POD", help="Find the smallest changes for this pod.")
@click.option("--capacity", is_flag=True, help="How many more pods like those of the manifests fit.")
@click.option("--ratio", callback=_ratio, default="", metavar="N:N…", help="With --capacity: pods of each manifest.")
@click.option("--defragment", is_flag=True, help="Find moves that empty nodes, or make room for --for.")
@click.option("--for", "for_pod", default="", metavar="FILE", help="With --defragment: the pod that needs room.")
@click.option(
    "--max-moves",
    "moves_max",
    type=click.IntRange(1, 1_000),
    metavar="N",
    default=50,
    show_default=True,
    help="With --defragment: at most this many moves.",
)
@click.option("--execute", is_flag=True, help="With --defragment: carry out the moves, one at a time.")
@seed_option
@output_option("table", "wide", "json", "yaml")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if a pod stays pending.")
@click.pass_context
def plan(
    ctx: click.Context,
    manifests: tuple[str, ...],
    files: tuple[str, ...],
    kubeconfig: str,
    context: str,
    config: str | None,
    plugins: tuple[str, ...],
    replicas: int | None,
    removed: tuple[str, ...],
    selector: str,
    examples: tuple[str, ...],
    count: int | None,
    fix_pod: str,
    capacity: bool,
    ratio: tuple[int, ...],
    defragment: bool,
    for_pod: str,
    moves_max: int,
    execute: bool,
    seed: int,
    output: str,
    exit_code: bool,
) -> None:
    questions = {
        "--remove-node": bool(removed or selector),
        "--add-node-like": bool(examples),
        "--fix": bool(fix_pod),
        "--capacity": capacity,
        "--defragment": defragment,
    }
    requested = [name for name, is_requested in questions.items() if is_requested]
    if len(requested) > 1:
        raise click.UsageError(f"{' and '.join(requested)} are different questions; ask one at a time")
    if capacity and not manifests:
        raise click.UsageError("--capacity needs a MANIFEST with the pods to count")
    if ratio and not capacity:
        raise click.UsageError("--ratio belongs to --capacity")
    if for_pod and not defragment:
        raise click.UsageError("--for belongs to --defragment")
    if execute and (not defragment or files):
        raise click.UsageError("--execute belongs to --defragment on a live cluster")
    if replicas is not None and not manifests:
        raise click.UsageError("--replicas needs a MANIFEST")
    if manifests and requested and requested[0] not in ("--capacity", "--add-node-like", "--remove-node"):
        raise click.UsageError(f"{requested[0]} takes no MANIFEST")

    from mooring.cli.plan.run import PlanOptions, run_plan
    from mooring.kit.clock import SystemClock

    options = PlanOptions(
        manifests=manifests,
        files=files,
        kubeconfig=kubeconfig,
        context=context,
        config=config,
        plugins=plugins,
        replicas=replicas,
        removed=removed,
        selector=selector,
        examples=examples,
        count=count,
        fix_pod=fix_pod,
        is_capacity=capacity,
        ratio=ratio,
        is_defragment=defragment,
        for_pod=for_pod,
        moves_max=moves_max,
        seed=seed,
    )
    if execute:
        from mooring.cli.plan.execute import execute_moves

        execute_moves(options, note, click.echo, SystemClock())
        return
    result = run_plan(options, sys.stdin.buffer, note, SystemClock())
    match output:
        case "json":
            from mooring.cli.plan.text import as_json

            click.echo(as_json(result), nl=False)
        case "yaml":
            from mooring.cli.plan.text import as_yaml

            click.echo(as_yaml(result), nl=False)
        case _:
            from mooring.cli.plan.text import as_lines
            from mooring.cli.terminal import standard_output

            for line in as_lines(result, standard_output(), is_wide=output == "wide"):
                click.echo(line)
    if exit_code and result.is_anything_pending:
        ctx.exit(EXIT_PENDING)
