"""The command `mooring`, its exit codes, and shell completion.

Exit codes: 0 success, 1 as documented by the subcommand, 2 invalid input, 130 interrupted, 141 broken pipe.

 1. Imports here slow `mooring --help` down: click and little else. Subcommands import what they need when they run.
 2. If the reader of standard output goes away (`mooring … | head`), the command ends silently.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click
from click.shell_completion import get_completion_class

from mooring import __version__
from mooring.cli.clusters.command import down, status
from mooring.cli.compare.command import compare
from mooring.cli.errors import InputError
from mooring.cli.explain.command import explain
from mooring.cli.parity.command import parity
from mooring.cli.plan.command import plan
from mooring.cli.scheduler.command import scheduler
from mooring.cli.standalone.command import controllers, nodes
from mooring.cli.up.command import up
from mooring.cli.why.command import queue, why

VARIABLE = "_MOORING_COMPLETE"
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


@click.command("completion", short_help="Print a completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Prints a script; source it, and the Tab key completes commands, flags and files.

    \b
      source <(mooring completion bash)
    """
    found = get_completion_class(shell)
    assert found is not None, f"click does not support {shell}"
    click.echo(found(ctx.find_root().command, {}, "mooring", VARIABLE).source(), nl=False)


@click.command("version", short_help="Show the version and the commit.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def version(output: str) -> None:
    """Shows the version of Mooring, the commit of its build, and the version of Kubernetes that it follows."""
    from mooring.kit.build import KUBERNETES_VERSION, build

    found = build()
    if output == "json":
        import json

        facts = {
            "version": found.version,
            "commit": found.commit,
            "kubernetes": KUBERNETES_VERSION,
            "python": found.python,
            "implementation": found.implementation,
            "platform": found.platform,
        }
        click.echo(json.dumps(facts, indent=2))
        return
    commit = f" ({found.commit[:12]})" if found.commit else ""
    click.echo(f"mooring {found.version}{commit}, as Kubernetes {KUBERNETES_VERSION}")
    click.echo(f"{found.implementation} {found.python}, {found.platform}")


class Command(click.Group):
    """A group of commands with common error handling."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # a broken pipe can still be caught here
            return result
        except InputError as error:
            for line in error.lines():
                click.echo(f"mooring: {line}", err=True)
            ctx.exit(EXIT_BAD_INPUT)
        except KeyboardInterrupt:
            click.echo("mooring: interrupted", err=True)
            ctx.exit(EXIT_INTERRUPTED)
        except BrokenPipeError:
            _send_output_nowhere()
            ctx.exit(EXIT_BROKEN_PIPE)


def _send_output_nowhere() -> None:
    """Buffered output would fail again when the interpreter flushes it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@click.group(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mooring", message="%(prog)s %(version)s")
def main() -> None:
    """Mooring, the Kubernetes scheduling system in Python.

    Decides exactly as kube-scheduler v1.36 does, and says why.
    """


main.add_command(completion)
main.add_command(explain)
main.add_command(plan)
main.add_command(compare)
main.add_command(parity)
main.add_command(why)
main.add_command(queue)
main.add_command(scheduler)
main.add_command(up)
main.add_command(status)
main.add_command(down)
main.add_command(controllers)
main.add_command(nodes)
main.add_command(version)
