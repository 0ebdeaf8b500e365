"""The command `mooring scheduler`: the scheduler as a standalone component.

1. Flags and defaults are those of kube-scheduler (`flags`). Unknown flags and arguments are errors.
2. Underscores in flag names are dashes, as in Kubernetes' components, and `-v=2` is `-v 2`.
3. Everything but click is imported when the command runs.
"""

from __future__ import annotations

import re
from typing import Any

import click
from click.core import ParameterSource

from mooring.cli.flags import FlagValue, option_of
from mooring.cli.scheduler.flags import FLAGS
from mooring.kit.memory import end_loading, loading

_SHORT_WITH_EQUALS = re.compile(r"^(-[a-z])=")


class ComponentCommand(click.Command):
    """A command whose help shows flags by section. The flags are created when they are needed."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self.params:
            self.params = _parameters()
        return super().get_params(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_SHORT_WITH_EQUALS.sub(r"\1", argument) for argument in args])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = {parameter.name: parameter.get_help_record(ctx) for parameter in self.get_params(ctx)}
        for section, flags in FLAGS.items():
            rows = [row for flag in flags if (row := shown.pop(flag.attribute, None)) is not None]
            if rows:
                with formatter.section(f"{section[0].upper()}{section[1:]} flags"):
                    formatter.write_dl(rows)
        with formatter.section("Global flags"):
            formatter.write_dl([row for row in shown.values() if row is not None])


def _run(**values: Any) -> None:
    """Assigns pods to nodes, exactly as kube-scheduler v1.36 does, with its flags, configuration file, endpoints and
    leader election.

    \b
      mooring scheduler --kubeconfig ~/.kube/config --leader-elect=false
      mooring scheduler --config scheduler.yaml --secure-port 10259
      mooring scheduler --kubeconfig ~/.kube/config --plugin my_rule.py
    """
    with loading():
        # First: after msgspec its import takes 1.5 times as long.
        import numpy  # noqa: F401

        from mooring.cli.scheduler.run import run_scheduler

        end_loading()
    ctx = click.get_current_context()
    flags: dict[str, FlagValue] = {flag.name: values[flag.attribute] for section in FLAGS.values() for flag in section}
    given = frozenset(
        name for name in flags if ctx.get_parameter_source(name.replace("-", "_")) is ParameterSource.COMMANDLINE
    )
    ctx.exit(run_scheduler(flags, given))


def _show_version(ctx: click.Context, param: click.Parameter, is_requested: bool) -> None:
    if is_requested:
        from mooring.kit.build import KUBERNETES_VERSION, build

        click.echo(f"mooring {build().version}, as Kubernetes {KUBERNETES_VERSION}")
        ctx.exit()


def _parameters() -> list[click.Parameter]:
    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_version,
        help="Show the version and exit.",
    )
    return [*(option_of(flag) for section in FLAGS.values() for flag in section), version]


scheduler = ComponentCommand(
    "scheduler",
    callback=_run,
    help=_run.__doc__,
    short_help="Run the scheduler against any API server.",
    epilog="It also accepts the flags of kube-scheduler that have no effect here; docs/running.md lists them.",
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda name: name.replace("_", "-"),
        "max_content_width": 120,
    },
)
