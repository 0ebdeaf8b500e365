"""Records the kubectl sessions again: record_kubectl.py --kubeconfig FILE [--output FOLDER] [NAME]...

Writes kubectl/NAME.txt with what kubectl printed. The first line of a session names the versions of server and kubectl.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import click

from tests.recordings.players import kubectl_player
from tools.recorder import RECORDINGS, check_names, recorder_options, report, target_of

MARK = "# recorded: "


def client_version(kubectl: str) -> str:
    done = subprocess.run([kubectl, "version", "--client", "-o", "json"], capture_output=True, check=True, text=True)
    return str(json.loads(done.stdout)["clientVersion"]["gitVersion"])


def record(session: Path, file: Path, kubeconfig: Path, kubectl: str, versions: str) -> list[str]:
    """Writes the session with the output of this kubectl; what went wrong."""
    if file != session:
        shutil.copyfile(session, file)
    options = Namespace(
        kubeconfig=str(kubeconfig), kubectl=kubectl, controllers=False, record=True, base=None, lines=30
    )
    results = kubectl_player.play(str(file), options)
    lines = [line for line in file.read_text(encoding="utf-8").splitlines(True) if not line.startswith(MARK)]
    file.write_text(f"{MARK}{versions}\n{''.join(lines)}", encoding="utf-8")
    return [f"{each['name']}: {each['diff']}" for each in results if each["result"] == "fail"]


@click.command(help=__doc__)
@recorder_options
@click.option("--kubectl", default="kubectl", show_default=True, metavar="BIN", help="The kubectl to record.")
def main(names: tuple[str, ...], kubeconfig: Path, output: Path, kubectl: str) -> None:
    found = shutil.which(kubectl)
    if found is None:
        raise click.UsageError(f"--kubectl: there is no {kubectl}; name a kubectl binary")
    target = target_of(kubeconfig)
    versions = f"kubectl {client_version(found)}, server {target.version}"
    sessions = {path.stem: path for path in sorted((RECORDINGS / "kubectl").glob("*.txt"))}
    check_names(names, list(sessions))
    (output / "kubectl").mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names or tuple(sessions):
        file = output / "kubectl" / f"{name}.txt"
        problems = record(sessions[name], file, kubeconfig, found, versions)
        failed += bool(problems)
        report(name, problems)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
