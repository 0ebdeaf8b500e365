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
from mooring.cli.console.command import console
from mooring.cli.errors import InputError
from mooring.cli.explain.command import explain
from mooring.cli.options import output_option
from mooring.cli.parity.command import parity
from mooring.cli.plan.command import plan
from mooring.cli.scheduler.command import scheduler
from mooring.cli.simulate.command import simulate
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
@output_option("text", "json")
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


SECTIONS = {
    "Clusters": (up, status, down),
    "Questions about a cluster": (explain, why, queue, console, plan, compare, simulate, parity),
    "Components for any cluster": (scheduler, controllers, nodes),
    "Other": (completion, version),
}
"""All commands, in the order of the help."""


class Command(click.Group):
    """A group of commands in sections, with common error handling."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The columns are those of one table, as wide as the longest name."""
        width = max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{command.name:{width}}", command.get_short_help_str(80)) for command in commands]
                )

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


for section in SECTIONS.values():
    for command in section:
        main.add_command(command)
