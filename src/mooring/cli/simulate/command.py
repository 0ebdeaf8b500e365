"""The `mooring simulate` command and its options.

Exit code 0 means that all simulations finished and all assertions hold, 1 that an assertion does not hold or that an
exact replay differs from its recording, 130 that the sweep was interrupted: what had finished is printed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mooring.kit.memory import end_loading, loading

EXIT_ASSERTION = 1
EXIT_DIFFERS = 1
EXIT_INTERRUPTED = 130

HELP = """Runs a scenario on virtual time with several scheduling policies, and shows the results side by side.

\b
  mooring simulate examples/simulations/weekend.yaml
  mooring simulate examples/simulations/rollout.yaml
  mooring simulate weekend.yaml --seeds 1..10 --output results
  mooring simulate weekend.yaml --assert "p99_wait_s <= 30"
  mooring simulate --replay run.recording --config packing.yaml
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


def _replay(
    ctx: click.Context,
    recording: str,
    config: str,
    plugins: tuple[str, ...],
    scenario: str,
    values: dict[str, str],
    policies: tuple[str, ...],
    output: str,
) -> None:
    from mooring.cli.simulate.replay import ReplayOptions, replay_json, replay_lines, run_replay
    from mooring.cli.terminal import standard_output
    from mooring.kit.clock import SystemClock

    options = ReplayOptions(recording, config, plugins, scenario, values, policies)
    outcome = run_replay(options, SystemClock())
    for note in outcome.notes:
        click.echo(f"mooring: note: {note}", err=True)
    if output == "json":
        click.echo(replay_json(outcome), nl=False)
    else:
        for line in replay_lines(outcome, standard_output()):
            click.echo(line)
    if outcome.is_interrupted:
        click.echo("mooring: interrupted: the rest of the recording was not replayed", err=True)
        ctx.exit(EXIT_INTERRUPTED)
    if outcome.is_failed:
        ctx.exit(EXIT_DIFFERS)


@click.command("simulate", help=HELP, short_help="Run days of a cluster in seconds.")
@click.argument("scenario", metavar="[SCENARIO]", default="")
@click.option(
    "--replay", "recording", default="", metavar="FILE", help="Decide again what scheduler --record recorded."
)
@click.option("--config", default="", metavar="FILE", help="With --replay: another KubeSchedulerConfiguration.")
@click.option(
    "--plugin", "plugins", multiple=True, metavar="FILE", help="With --replay: a plugin file. May be repeated."
)
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
    "--on",
    default="",
    metavar="ENGINE",
    help="Instead of worker processes: dask://HOST:PORT, ray://HOST:PORT, dask://local or ray://local.",
)
@click.option(
    "--diff", nargs=2, metavar="POLICY POLICY", help="Show the pods that these two policies placed on different nodes."
)
@click.option(
    "-o", "output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="The format."
)
@click.option("--output", "folder", default="", metavar="DIR", help="Write tables, plots and report.html.")
@click.option("--resume", is_flag=True, help="With --output: use the results that are there.")
@click.option(
    "--assert", "assertions", multiple=True, metavar="TEXT", help='Exit with 1 unless "p99_wait_s <= 30" holds.'
)
@click.pass_context
def simulate(
    ctx: click.Context,
    scenario: str,
    recording: str,
    config: str,
    plugins: tuple[str, ...],
    values: dict[str, str],
    policies: tuple[str, ...],
    seeds: str,
    ties: str | None,
    level: str | None,
    workers: int | None,
    on: str,
    diff: tuple[str, str] | None,
    output: str,
    folder: str,
    resume: bool,
    assertions: tuple[str, ...],
) -> None:
    if resume and not folder:
        raise click.UsageError("--resume needs --output, where the results are")
    if recording:
        given: dict[str, object] = {
            "--seeds": seeds,
            "--ties": ties,
            "--level": level,
            "--workers": workers,
            "--on": on,
        }
        given |= {"--diff": diff, "--output": folder, "--assert": assertions}
        contradicting = [name for name, value in given.items() if value]
        if contradicting:
            raise click.UsageError(f"--replay has no use for {', '.join(contradicting)}")
        _replay(ctx, recording, config, plugins, scenario, values, policies, output)
        return
    if not scenario:
        raise click.UsageError("Missing argument 'SCENARIO'; or use --replay FILE")
    if config or plugins:
        raise click.UsageError("--config and --plugin belong to --replay; a scenario names those of its policies")

    with loading():
        from mooring.cli.simulate.report import write_folder
        from mooring.cli.simulate.run import (
            SimulateOptions,
            as_json,
            as_lines,
            difference_lines,
            placement_differences,
            run_simulate,
        )
        from mooring.cli.terminal import standard_output
        from mooring.kit.clock import SystemClock

        end_loading()
    options = SimulateOptions(
        scenario=scenario,
        values=values,
        policies=policies,
        seeds=seeds,
        ties=ties,
        level=level,
        workers=workers,
        on=on,
        diff=diff,
        folder=folder,
        resumes=resume,
        assertions=assertions,
    )
    outcome = run_simulate(options, SystemClock())
    found, compared = placement_differences(outcome.results, diff) if diff is not None else ([], 0)
    if output == "json":
        click.echo(as_json(outcome.results), nl=False)
    else:
        for line in as_lines(outcome.results, standard_output().width):
            click.echo(line)
    if diff is not None:
        click.echo("", err=output == "json")
        for line in difference_lines(found, compared, diff):
            click.echo(line, err=output == "json")
    if folder and outcome.results:
        files, notes = write_folder(outcome.results, folder, Path(scenario).name, diff, (found, compared))
        click.echo(f"mooring: note: wrote {len(files)} files to {folder}: see {Path(folder, 'report.html')}", err=True)
        for text in notes:
            click.echo(f"mooring: note: {text}", err=True)
    if outcome.is_interrupted:
        left = f"{outcome.planned - len(outcome.results)} of {outcome.planned} simulations are missing"
        hint = "; --resume goes on" if folder else "; with --output DIR, --resume would go on"
        click.echo(f"mooring: interrupted: {left}{hint}", err=True)
        ctx.exit(EXIT_INTERRUPTED)
    sys.stdout.flush()
    violations = outcome.violations()
    for text in violations:
        click.echo(f"mooring: {text}", err=True)
    if violations:
        ctx.exit(EXIT_ASSERTION)
