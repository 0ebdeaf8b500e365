"""Records the API transcripts again: record_api.py --kubeconfig FILE [--output FOLDER] [NAME]...

Writes api.jsonl.xz with the answers of the API server of the kubeconfig. Steps of the user `limited` need a server that
knows the token of `--limited-token`; without it they keep their answers.
"""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import click

from tests.recordings.players import api_player
from tools.recorder import Json, Record, Target, record_file, recorder_options


def recorder(limited_token: str) -> Record:
    def record(transcript: Json, target: Target) -> tuple[Json, list[str]]:
        played = json.loads(json.dumps(transcript))
        client = api_player.Client(target.server, target.token, limited_token or None, insecure=True)
        options = Namespace(record=True, ignore=[], run=None, keep=False, slow=0)
        results = api_player.Player(client, options).play(played)
        return played, [f"{each['name']}: {each['diff']}" for each in results if each["result"] == "fail"]

    return record


@click.command(help=__doc__)
@recorder_options
@click.option("--limited-token", default="", help="The token of a user `limited` in the group `limited-group`.")
def main(names: tuple[str, ...], kubeconfig: Path, output: Path, limited_token: str) -> None:
    record_file("api.jsonl.xz", recorder(limited_token), kubeconfig, output, names)


if __name__ == "__main__":
    main()
