"""What the recorders of tests/recordings share: the cluster, the transcripts, and the version that a recording names.

A transcript is a list of requests with the answers of a server. A recorder plays the requests against the cluster of a
kubeconfig and replaces the answers. It creates and deletes objects there: use a cluster that has no other use.
"""

from __future__ import annotations

import json
import lzma
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from mooring.api.yaml import load_document

RECORDINGS = Path(__file__).parent.parent / "tests" / "recordings"
TIMEOUT_S = 30.0
Json = dict[str, Any]


class Target(NamedTuple):
    """The cluster to record from."""

    kubeconfig: Path
    server: str
    token: str
    version: str


def target_of(kubeconfig: Path) -> Target:
    """The cluster of the current context. Raises `click.ClickException`."""
    try:
        found: Any = load_document(kubeconfig.read_bytes(), str(kubeconfig)).data
        context = _named(found, "contexts", found["current-context"])["context"]
        server = str(_named(found, "clusters", context["cluster"])["cluster"]["server"])
        token = str(_named(found, "users", context["user"])["user"].get("token", ""))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{kubeconfig}: cannot read a cluster from it: {error}") from error
    if not token:
        raise click.ClickException(
            f"{kubeconfig}: the user has no token; the recorder needs one (kubectl create token NAME makes one)"
        )
    return Target(kubeconfig, server, token, _version(server, token))


def _named(kubeconfig: Json, group: str, name: str) -> Json:
    for each in kubeconfig[group]:
        if each["name"] == name:
            return dict(each)
    raise KeyError(f"no {name!r} in {group}")


def _version(server: str, token: str) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(f"{server}/version", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
            return str(json.load(answer)["gitVersion"])
    except (OSError, ValueError, KeyError) as error:
        raise click.ClickException(f"{server}/version does not answer as an API server does: {error}") from error


def read_transcripts(file: Path) -> list[Json]:
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_transcripts(file: Path, transcripts: list[Json]) -> None:
    with lzma.open(file, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(transcript) + "\n" for transcript in transcripts)


Record = Callable[[Json, Target], tuple[Json, list[str]]]
"""Plays one transcript; the recorded one, and what went wrong."""


def record_file(name: str, record: Record, kubeconfig: Path, output: Path, only: tuple[str, ...]) -> None:
    """Records the transcripts of a file again; those that are not asked for stay as they are. Ends the process."""
    target = target_of(kubeconfig)
    transcripts = read_transcripts(RECORDINGS / name)
    check_names(only, [transcript["name"] for transcript in transcripts])
    failed = 0
    for place, transcript in enumerate(transcripts):
        if not only or transcript["name"] in only:
            recorded, problems = record(transcript, target)
            transcripts[place] = {**recorded, "recorded": {**recorded.get("recorded", {}), "version": target.version}}
            failed += bool(problems)
            report(transcript["name"], problems)
    output.mkdir(parents=True, exist_ok=True)
    write_transcripts(output / name, transcripts)
    sys.exit(1 if failed else 0)


def check_names(asked: tuple[str, ...], known: list[str]) -> None:
    """Raises `click.UsageError` for an unknown name."""
    if unknown := sorted(set(asked) - set(known)):
        raise click.UsageError(f"there is no transcript {unknown[0]!r}; there are {', '.join(sorted(known))}")


def report(name: str, problems: list[str]) -> None:
    click.echo(f"{'FAILED' if problems else 'recorded'} {name}")
    for problem in problems:
        click.echo(f"    {problem}")


def recorder_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every recorder."""
    folder = click.Path(path_type=Path, file_okay=False)
    file = click.Path(path_type=Path, dir_okay=False, exists=True)
    command = click.option("--output", type=folder, default=RECORDINGS, help="Where to write.  [default: in place]")(
        command
    )
    command = click.option("--kubeconfig", type=file, required=True, help="The cluster to record from.")(command)
    return click.argument("names", nargs=-1, metavar="[NAME]...")(command)
