"""The `mooring parity` command and its options."""

from __future__ import annotations

import sys

import click

from mooring.cli.options import connection_options, note, output_option

EXIT_DIFFERENT = 1
HELP = """Compares our decisions with those of a kube-scheduler binary, pod by pod: feasible nodes, the score of each
plugin on each node, the chosen node, the message, the nominated node and the victims.

\b
  mooring parity --kube-scheduler BIN --random 20
  mooring parity --kube-scheduler BIN -f cluster.json
  mooring parity --kube-scheduler BIN --kubeconfig FILE
  mooring parity --kube-scheduler BIN --random 20 --record tests/golden/random

The cluster comes from a dump, from a live cluster (which is only read), or is generated. It is loaded into an API
server on 127.0.0.1 without a scheduler, against which the binary runs. Its pending pods are compared.

Exit code 1: there is a difference that the version of the binary does not explain.
"""
NO_BINARY = (
    "mooring parity needs a kube-scheduler binary, v1.30 or newer: --kube-scheduler BIN. It is part of every "
    "Kubernetes release (the server binaries, or the image registry.k8s.io/kube-scheduler). Nothing is downloaded here."
)


@click.command("parity", help=HELP, short_help="Compare our decisions with a kube-scheduler binary.")
@click.option("--kube-scheduler", "binary", default="", metavar="BIN", help="The binary to compare with.")
@click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE", help="A dump: a file, a folder, or -. May be repeated."
)
@connection_options
@click.option("--random", "count", type=click.IntRange(1, 10_000), metavar="N", help="Generate N clusters.")
@click.option("--seed", type=int, default=1, show_default=True, help="The seed of the first generated cluster.")
@click.option(
    "--record",
    default="",
    metavar="NAME",
    help="Write NAME.scenarios.jsonl.xz and NAME.verdicts.jsonl.xz, which tests/golden can replay.",
)
@output_option("text", "json")
def parity(
    binary: str,
    files: tuple[str, ...],
    kubeconfig: str,
    context: str,
    count: int | None,
    seed: int,
    record: str,
    output: str,
) -> None:
    if not binary:
        raise click.UsageError(NO_BINARY)
    if sum((bool(files), bool(kubeconfig or context), count is not None)) > 1:
        raise click.UsageError("-f, --kubeconfig and --random name different clusters: give one of them")

    from mooring.cli.parity.run import ParityOptions, as_json, as_lines, run_parity
    from mooring.kit.clock import SystemClock

    options = ParityOptions(binary, files, kubeconfig, context, count or 0, seed, record)
    result = run_parity(options, sys.stdin.buffer, note, SystemClock())
    if output == "json":
        click.echo(as_json(result), nl=False)
    else:
        for line in as_lines(result):
            click.echo(line)
    if not result.is_same:
        sys.exit(EXIT_DIFFERENT)
