"""The commands `mooring why` and `mooring queue`, and their options."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

import click

from mooring.cli.flags import Decorated, with_options
from mooring.cli.options import SchedulerAddress, connection_options, output_option

EXIT_UNKNOWN_POD = 1

WHY_HELP = """Shows the attempts of the running scheduler for a pod: what each one found, what changed since the one
before, and what the pod waits for. It asks the scheduler of `mooring up` through its API server, or any Mooring
scheduler by --scheduler. The exit code is 1 if the scheduler does not know the pod.

\b
  mooring why default/web-1
  mooring why web-1 --node n7                    what is in the way there?
  mooring why web-1 --scheduler https://10.0.0.4:10259
  mooring why web-1 --decision-log decisions.db  what did it decide yesterday?
"""
QUEUE_HELP = """Shows which pods wait in the running scheduler: where, since when, why, when they are tried again, and
the events that would cause that.
"""


def scheduler_options(command: Decorated) -> Decorated:
    """Which scheduler is asked, and how its certificate is verified. The command gets a `SchedulerAddress`."""

    @functools.wraps(command)
    def checked(*, scheduler: str, certificate_authority: str, insecure_skip_tls_verify: bool, **values: Any) -> Any:
        if (certificate_authority or insecure_skip_tls_verify) and not scheduler:
            raise click.UsageError("--certificate-authority and --insecure-skip-tls-verify belong to --scheduler")
        if certificate_authority and insecure_skip_tls_verify:
            raise click.UsageError("--certificate-authority contradicts --insecure-skip-tls-verify")
        address = SchedulerAddress(scheduler, certificate_authority, insecure_skip_tls_verify)
        return command(address=address, **values)

    options = with_options(
        click.option(
            "--scheduler",
            default="",
            metavar="URL",
            help="The secure port of the scheduler. Default: the API server of the kubeconfig.",
        ),
        click.option(
            "--certificate-authority",
            default="",
            metavar="FILE",
            help="With --scheduler: the CA of its certificate, or the certificate itself if it is self-signed. "
            "Default: that of the kubeconfig.",
        ),
        click.option(
            "--insecure-skip-tls-verify",
            is_flag=True,
            help="With --scheduler: do not verify its certificate.",
        ),
    )
    return cast(Decorated, options(checked))


@click.command("why", help=WHY_HELP, short_help="Show the scheduling attempts of a pod.")
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option(
    "--decision-log", default="", metavar="FILE", help="Read the attempts from the file of scheduler --decision-log."
)
@click.option("--node", default="", metavar="NODE", help="Say what is in the way on this node, as of now.")
@connection_options
@scheduler_options
@output_option("text", "json", "yaml")
@click.pass_context
def why(
    ctx: click.Context,
    pod: str,
    decision_log: str,
    node: str,
    kubeconfig: str,
    context: str,
    address: SchedulerAddress,
    output: str,
) -> None:
    if decision_log and node:
        raise click.UsageError("--node asks about the cluster as it is now, not about a decision log")

    from mooring.cli.terminal import standard_output
    from mooring.cli.why.scheduler_client import SchedulerClient, is_known, logged_decisions, obstacles_on
    from mooring.cli.why.text import attempts_lines, node_lines
    from mooring.kit.clock import SystemClock

    clock, width = SystemClock(), standard_output().width
    if decision_log:
        key = pod if "/" in pod else f"default/{pod}"
        decisions, rows = logged_decisions(decision_log, key), []
    else:
        client = SchedulerClient(kubeconfig, context, address, clock)
        key = pod if "/" in pod else f"{client.namespace}/{pod}"
        if node:
            found = obstacles_on(key, node, kubeconfig, context, clock)
            _print(found, node_lines(found, width), output)
            return
        decisions, rows = client.decisions(key), client.queue(key)
    document = {"pod": key, "attempts": decisions, "queue": rows}
    _print(document, attempts_lines(key, decisions, rows, clock.wall_s(), width), output)
    if not is_known(decisions, rows):
        ctx.exit(EXIT_UNKNOWN_POD)


@click.command("queue", help=QUEUE_HELP, short_help="Show the pods that wait in the scheduler.")
@connection_options
@scheduler_options
@output_option("text", "json", "yaml")
def queue(kubeconfig: str, context: str, address: SchedulerAddress, output: str) -> None:
    from mooring.cli.terminal import standard_output
    from mooring.cli.why.scheduler_client import SchedulerClient
    from mooring.cli.why.text import queue_lines
    from mooring.kit.clock import SystemClock

    clock = SystemClock()
    page = SchedulerClient(kubeconfig, context, address, clock).whole_queue()
    _print(page, queue_lines(page, clock.wall_s(), standard_output().width), output)


def _print(document: Mapping[str, Any], lines: Iterable[str], output: str) -> None:
    """The document for programs, or the lines for people."""
    if output == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    if output == "yaml":
        from mooring.cli.terminal import yaml_text

        click.echo(yaml_text(document), nl=False)
        return
    for line in lines:
        click.echo(line)
