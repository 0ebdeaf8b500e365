"""The commands `mooring why` and `mooring queue`, and their options."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any, TypeVar

import click

WIDTH_MAX = 120
Decorated = TypeVar("Decorated", bound=Callable[..., Any])

WHY_HELP = """Shows the attempts of the running scheduler for a pod: what each one found, what changed since the one
before, and what the pod waits for. It asks the scheduler of `mooring up` through its API server, or any Mooring
scheduler by --scheduler.

\b
  mooring why default/web-1
  mooring why web-1 --node n7                    what is in the way there?
  mooring why web-1 --scheduler https://10.0.0.4:10259
  mooring why web-1 --decision-log decisions.db  what did it decide yesterday?
"""
QUEUE_HELP = """Shows which pods wait in the running scheduler: where, since when, why, when they are tried again, and
the events that would cause that.
"""


def _connection_options(command: Decorated) -> Decorated:
    options = (
        click.option("--kubeconfig", default="", metavar="FILE", help="Ask the cluster of this kubeconfig."),
        click.option("--context", default="", metavar="NAME", help="Ask the cluster of this context."),
        click.option(
            "--scheduler",
            default="",
            metavar="URL",
            help="The secure port of the scheduler. Default: the API server of the kubeconfig.",
        ),
        click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("why", help=WHY_HELP, short_help="Show the scheduling attempts of a pod.")
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option(
    "--decision-log", default="", metavar="FILE", help="Read the attempts from the file of scheduler --decision-log."
)
@click.option("--node", default="", metavar="NODE", help="Say what is in the way on this node, as of now.")
@_connection_options
def why(pod: str, decision_log: str, node: str, kubeconfig: str, context: str, scheduler: str, output: str) -> None:
    if decision_log and node:
        raise click.UsageError("--node asks about the cluster as it is now, not about a decision log")

    from mooring.cli.why.ask import Asker, logged_decisions, obstacles_on
    from mooring.cli.why.text import attempts_lines, node_lines
    from mooring.kit.clock import SystemClock

    clock = SystemClock()
    if decision_log:
        key = pod if "/" in pod else f"default/{pod}"
        decisions = logged_decisions(decision_log, key)
        if output == "json":
            click.echo(json.dumps({"pod": key, "attempts": decisions, "queue": []}, indent=2, ensure_ascii=False))
        else:
            _print(attempts_lines(key, decisions, [], clock.wall_s(), _width()))
        return
    asker = Asker(kubeconfig, context, scheduler, clock)
    key = pod if "/" in pod else f"{asker.namespace}/{pod}"
    if node:
        found = obstacles_on(key, node, kubeconfig, context, clock)
        if output == "json":
            click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        else:
            _print(node_lines(found, _width()))
        return
    decisions, rows = asker.decisions(key), asker.queue(key)
    if output == "json":
        click.echo(json.dumps({"pod": key, "attempts": decisions, "queue": rows}, indent=2, ensure_ascii=False))
    else:
        _print(attempts_lines(key, decisions, rows, clock.wall_s(), _width()))


@click.command("queue", help=QUEUE_HELP, short_help="Show the pods that wait in the scheduler.")
@_connection_options
def queue(kubeconfig: str, context: str, scheduler: str, output: str) -> None:
    from mooring.cli.why.ask import Asker
    from mooring.cli.why.text import queue_lines
    from mooring.kit.clock import SystemClock

    clock = SystemClock()
    page = Asker(kubeconfig, context, scheduler, clock).whole_queue()
    if output == "json":
        click.echo(json.dumps(page, indent=2, ensure_ascii=False))
    else:
        _print(queue_lines(page, clock.wall_s(), _width()))


def _width() -> int:
    return min(shutil.get_terminal_size((80, 24)).columns, WIDTH_MAX)


def _print(lines: Any) -> None:
    for line in lines:
        click.echo(line)
