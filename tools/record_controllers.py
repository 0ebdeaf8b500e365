"""Records the controller transcripts again: record_controllers.py --kubeconfig FILE [--output FOLDER] [NAME]...

Writes controllers.jsonl.xz with what the controllers of the cluster did. The cluster has no scheduler, no nodes and the
flags that the field `recorded` of a transcript names: with others, grace periods differ.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from tools.recorder import RECORDINGS, Json, Record, Target, record_file, recorder_options

PLAYER = RECORDINGS / "players" / "controllers" / "player.py"


def recorder(plays: int) -> Record:
    def record(transcript: Json, target: Target) -> tuple[Json, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{transcript['name']}.json"
            file.write_text(json.dumps(transcript), encoding="utf-8")
            access = ["--server", target.server, "--token", target.token, "--insecure"]
            command = [sys.executable, PLAYER.name, "record", *access, "--plays", str(plays), str(file)]
            done = subprocess.run(command, cwd=PLAYER.parent, capture_output=True, text=True, check=False)
            problems = (done.stdout + done.stderr).splitlines() if done.returncode else []
            return json.loads(file.read_text(encoding="utf-8")), problems

    return record


@click.command(help=__doc__)
@recorder_options
@click.option("--plays", type=click.IntRange(1, 10), default=3, show_default=True, help="How often each is played.")
def main(names: tuple[str, ...], kubeconfig: Path, output: Path, plays: int) -> None:
    record_file("controllers.jsonl.xz", recorder(plays), kubeconfig, output, names)


if __name__ == "__main__":
    main()
