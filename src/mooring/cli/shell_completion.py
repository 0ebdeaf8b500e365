"""`mooring completion`: a script that teaches a shell what can be typed after `mooring`.

source <(mooring completion bash)
mooring completion zsh > "${fpath[1]}/_mooring"
mooring completion fish | source
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_MOORING_COMPLETE"


@click.command("completion", short_help="Print a completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Prints a script; source it, and the Tab key knows commands, flags and files.

    \b
      source <(mooring completion bash)
    """
    found = get_completion_class(shell)
    assert found is not None, f"the library knows no {shell}"
    click.echo(found(ctx.find_root().command, {}, "mooring", VARIABLE).source(), nl=False)
