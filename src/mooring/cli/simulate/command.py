"""The `mooring simulate` command and its options.

Exit code 0 means that all simulations finished and all assertions hold, 1 that an assertion does not hold, 130 that the
sweep was interrupted: what had finished is printed.
"""

from __future__ import annotations

import sys

import click

EXIT_ASSERTION = 1
EXIT_INTERRUPTED = 130

HELP = """Runs a scenario on virtual time with several scheduling policies, and shows the results side by side.

\b
  mooring simulate examples/simulations/weekend.yaml
  mooring simulate examples/simulations/rollout.yaml
  mooring simulate weekend.yaml --seeds 1..10 --output results
  mooring simulate weekend.yaml --assert "p99_wait_s <= 30"
  mooring simulate examples/simulations/fgd/experiment.yaml \\
      --set nodes=NODES.csv --set pods=PODS.csv \\
      --policy FGD --policy BestFit --seeds 42..51 -o json

The same scenario, policy and seed give the same result, on every machine.
"""


def _values(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"{text!r} is no NAME=VALUE", ctx, param)
        values[name] = value
    return values


@click.command("simulate", help=HELP, short_help="Run days of a cluster in seconds.")
@click.argument("scenario", metavar="SCENARIO")
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE", callback=_values, help="Set a parameter.")
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="Only this policy. May be repeated.")
@click.option("--seeds", default="", metavar="1..5", help="Instead of those of the scenario: 7, 1..5 or 1,2,9.")
@click.option(
    "--ties",
    type=click.Choice(["seed", "name"]),
    help="Of equally good nodes, a random one or the one with the smallest name. Default: as in the scenario.",
)
@click.option(
    "--level",
    type=click.Choice(["engine", "cluster"]),
    help="Decisions only, or API server, controllers and kubelets as well. Default: as in the scenario.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="Worker processes. Default: one for each processor.")
@click.option(
    "-o", "output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="The format."
)
@click.option("--output", "folder", default="", metavar="DIR", help="Write results, samples (CSV) and plots (SVG).")
@click.option("--resume", is_flag=True, help="With --output: use the results that are there.")
@click.option(
    "--assert", "assertions", multiple=True, metavar="TEXT", help='Exit with 1 unless "p99_wait_s <= 30" holds.'
)
@click.pass_context
def simulate(
    ctx: click.Context,
    scenario: str,
    values: dict[str, str],
    policies: tuple[str, ...],
    seeds: str,
    ties: str | None,
    level: str | None,
    workers: int | None,
    output: str,
    folder: str,
    resume: bool,
    assertions: tuple[str, ...],
) -> None:
    if resume and not folder:
        raise click.UsageError("--resume needs --output, where the results are")

    from mooring.cli.simulate.run import SimulateOptions, run_simulate
    from mooring.cli.simulate.text import as_json, as_lines, write_folder
    from mooring.kit.clock import SystemClock

    options = SimulateOptions(
        scenario=scenario,
        values=values,
        policies=policies,
        seeds=seeds,
        ties=ties,
        level=level,
        workers=workers,
        folder=folder,
        resumes=resume,
        assertions=assertions,
    )
    outcome = run_simulate(options, SystemClock())
    if output == "json":
        click.echo(as_json(outcome.results), nl=False)
    else:
        for line in as_lines(outcome.results):
            click.echo(line)
    if folder and outcome.results:
        for name in write_folder(outcome.results, folder):
            click.echo(f"mooring: note: wrote {name}", err=True)
    if outcome.is_interrupted:
        left = f"{outcome.wanted - len(outcome.results)} of {outcome.wanted} simulations are missing"
        hint = "; --resume goes on" if folder else "; with --output DIR, --resume would go on"
        click.echo(f"mooring: interrupted: {left}{hint}", err=True)
        ctx.exit(EXIT_INTERRUPTED)
    for text in outcome.violations:
        click.echo(f"mooring: {text}", err=True)
    sys.stdout.flush()
    if outcome.violations:
        ctx.exit(EXIT_ASSERTION)
