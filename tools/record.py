"""Records tests/recordings again: python -m tools.record api|controllers|kubectl --kubeconfig FILE [NAME]...

A transcript is a list of requests with the answers of a server. A recorder plays the requests against the cluster of a
kubeconfig and replaces the answers, and names the version. It creates and deletes objects there: use a cluster that has
no other use. With names, only those transcripts are recorded.
"""

from __future__ import annotations

import json
import lzma
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from mooring.api.yaml import load_document
from tests.recordings.players import api_player, kubectl_player

RECORDINGS = Path(__file__).parent.parent / "tests" / "recordings"
CONTROLLERS_PLAYER = RECORDINGS / "players" / "controllers" / "player.py"
TIMEOUT_S = 30.0
MARK = "# recorded: "
"""The first line of a kubectl session names the versions of server and kubectl."""
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
    for entry in kubeconfig[group]:
        if entry["name"] == name:
            return dict(entry)
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


@click.group(help=__doc__)
def main() -> None:
    """A command for each kind of recording."""


# --- api ------------------------------------------------------------------------------------------------------


def _api_recorder(limited_token: str) -> Record:
    def record(transcript: Json, target: Target) -> tuple[Json, list[str]]:
        played = json.loads(json.dumps(transcript))
        client = api_player.Client(target.server, target.token, limited_token or None, insecure=True)
        options = Namespace(record=True, ignore=[], run=None, keep=False, slow=0)
        results = api_player.Player(client, options).play(played)
        return played, [f"{result['name']}: {result['diff']}" for result in results if result["result"] == "fail"]

    return record


@main.command("api")
@recorder_options
@click.option("--limited-token", default="", help="The token of a user `limited` in the group `limited-group`.")
def record_api(names: tuple[str, ...], kubeconfig: Path, output: Path, limited_token: str) -> None:
    """Writes api.jsonl.xz with the answers of the API server of the kubeconfig.

    Steps of the user `limited` need a server that knows the token of --limited-token; without it they keep their
    answers.
    """
    record_file("api.jsonl.xz", _api_recorder(limited_token), kubeconfig, output, names)


# --- controllers -----------------------------------------------------------------------------------------------


def _controllers_recorder(plays: int) -> Record:
    def record(transcript: Json, target: Target) -> tuple[Json, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{transcript['name']}.json"
            file.write_text(json.dumps(transcript), encoding="utf-8")
            access = ["--server", target.server, "--token", target.token, "--insecure"]
            command = [sys.executable, CONTROLLERS_PLAYER.name, "record", *access, "--plays", str(plays), str(file)]
            done = subprocess.run(command, cwd=CONTROLLERS_PLAYER.parent, capture_output=True, text=True, check=False)
            problems = (done.stdout + done.stderr).splitlines() if done.returncode else []
            return json.loads(file.read_text(encoding="utf-8")), problems

    return record


@main.command("controllers")
@recorder_options
@click.option("--plays", type=click.IntRange(1, 10), default=3, show_default=True, help="How often each is played.")
def record_controllers(names: tuple[str, ...], kubeconfig: Path, output: Path, plays: int) -> None:
    """Writes controllers.jsonl.xz with what the controllers of the cluster did.

    The cluster has no scheduler, no nodes and the flags that the field `recorded` of a transcript names: with others,
    grace periods differ.
    """
    record_file("controllers.jsonl.xz", _controllers_recorder(plays), kubeconfig, output, names)


# --- kubectl ---------------------------------------------------------------------------------------------------


def _client_version(kubectl: str) -> str:
    done = subprocess.run([kubectl, "version", "--client", "-o", "json"], capture_output=True, check=True, text=True)
    return str(json.loads(done.stdout)["clientVersion"]["gitVersion"])


def _record_session(session: Path, file: Path, kubeconfig: Path, kubectl: str, versions: str) -> list[str]:
    """Writes the session with the output of this kubectl; what went wrong."""
    if file != session:
        shutil.copyfile(session, file)
    options = Namespace(
        kubeconfig=str(kubeconfig), kubectl=kubectl, controllers=False, record=True, base=None, lines=30
    )
    results = kubectl_player.play(str(file), options)
    lines = [line for line in file.read_text(encoding="utf-8").splitlines(True) if not line.startswith(MARK)]
    file.write_text(f"{MARK}{versions}\n{''.join(lines)}", encoding="utf-8")
    return [f"{result['name']}: {result['diff']}" for result in results if result["result"] == "fail"]


@main.command("kubectl")
@recorder_options
@click.option("--kubectl", default="kubectl", show_default=True, metavar="BIN", help="The kubectl to record.")
def record_kubectl(names: tuple[str, ...], kubeconfig: Path, output: Path, kubectl: str) -> None:
    """Writes kubectl/NAME.txt with what kubectl printed."""
    found = shutil.which(kubectl)
    if found is None:
        raise click.UsageError(f"--kubectl: there is no {kubectl}; name a kubectl binary")
    target = target_of(kubeconfig)
    versions = f"kubectl {_client_version(found)}, server {target.version}"
    sessions = {path.stem: path for path in sorted((RECORDINGS / "kubectl").glob("*.txt"))}
    check_names(names, list(sessions))
    (output / "kubectl").mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names or tuple(sessions):
        file = output / "kubectl" / f"{name}.txt"
        problems = _record_session(sessions[name], file, kubeconfig, found, versions)
        failed += bool(problems)
        report(name, problems)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
