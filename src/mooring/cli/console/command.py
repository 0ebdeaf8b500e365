"""The command `mooring console` and its options."""

from __future__ import annotations

import click

from mooring.cli.options import config_option, connection_options

PORT = 8490

HELP = """Serves the web console for any cluster, read-only, on this machine. Another scheduler decides there: the queue
and the attempts are computed here, from the state of the API server, and the page says so. It needs permission to list
and watch what kube-scheduler watches; kinds that may not be read are named and ignored. Ctrl-C ends it.

\b
  mooring console --kubeconfig ~/.kube/config
  mooring console --context staging --port 0          any free port
"""


@click.command("console", help=HELP, short_help="Show any cluster in a browser: nodes, queue, decisions.")
@connection_options
@config_option
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="The port. 0: any free one."
)
@click.option(
    "--bind-address",
    default="127.0.0.1",
    show_default=True,
    metavar="IP",
    help="The address. Any other than loopback lets others reach the login page.",
)
def console(kubeconfig: str, context: str, config: str | None, port: int, bind_address: str) -> None:
    from mooring.cli.console.run import run_console

    run_console(kubeconfig, context, config, port, bind_address)
