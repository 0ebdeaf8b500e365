"""Records what kube-apiserver stores: record_storage.py --kubeconfig FILE --etcd ADDRESS [--output FOLDER]

Creates the objects of the API transcripts and `EXTRA`, and writes all keys below /registry/ with their values, and what
the server answers for the kinds that we serve, to storage.jsonl.xz: the part `protobuf` or `json`, whichever the server
stores; the other part stays. Record both with `kube-apiserver --storage-media-type`. Use a cluster and an etcd that
have no other use.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from mooring.api.kinds import all_kinds
from mooring.client.http.client import collection_path
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.store.etcd.store import EtcdStore
from tests.recordings.players import api_player
from tools.record import RECORDINGS, Json, read_transcripts, recorder_options, target_of, write_transcripts

FILE = "storage.jsonl.xz"
OF_KIND_MAX = 12
"""Objects recorded of one kind: the first ones of the transcripts."""
ESTABLISHED_S_MAX = 20.0
RUN = "stored"

_NOT_STORED = frozenset({"binding", "bindings", "eviction", "selfsubjectaccessreviews"})
_NAMESPACES = "/api/v1/namespaces"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "x-kubernetes-validations": [{"rule": "self.size <= 10", "message": "is too large", "fieldPath": ".size"}],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "ratio": {"type": "number", "multipleOf": 0.5},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "tags": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                },
                "limits": {"type": "object", "additionalProperties": {"type": "string"}},
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}
_VERSION = {
    "served": True,
    "schema": {"openAPIV3Schema": _SCHEMA},
    "subresources": {
        "status": {},
        "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"},
    },
    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}],
    "selectableFields": [{"jsonPath": ".spec.size"}],
}
_NAMES = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList", "shortNames": ["gr"]}
_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gears.stored.example.com", "labels": {"a": "b"}},
    "spec": {
        "group": "stored.example.com",
        "scope": "Namespaced",
        "names": {**_NAMES, "categories": ["all"]},
        "versions": [
            {"name": "v1", "storage": True, **_VERSION},
            {"name": "v1alpha1", "storage": False, "deprecated": True, **_VERSION},
        ],
    },
}
_GEAR = {
    "apiVersion": "stored.example.com/v1",
    "kind": "Gear",
    "metadata": {"name": "large", "annotations": {"a": "b"}},
    "spec": {
        "ratio": 2.5,
        "port": "http",
        "free": {"metadata": {"name": "another"}, "list": [1, None, {"a": 1.0}], "empty": {}},
        "parts": [{"name": "one", "tags": ["x"]}, {"name": "two"}],
        "limits": {"cpu": "1"},
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "inner"}},
    },
}
EXTRA = (
    (_DEFINITIONS, _DEFINITION),
    ("/apis/stored.example.com/v1/namespaces/default/gears", _GEAR),
    (
        "/api/v1/namespaces/default/endpoints",
        {"metadata": {"name": "web"}, "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]},
    ),
)


def creations() -> Iterator[tuple[str, Json]]:
    """Paths and objects that kube-apiserver creates, in an order in which it does."""
    found = list(_recorded_creations())
    used = set(re.findall(r"/namespaces/([^/]+)/", " ".join(path for path, _ in found)))
    for path, body in found:
        if path != _NAMESPACES or body["metadata"].get("name") in used:
            yield path, body
    yield from EXTRA


def _recorded_creations() -> Iterator[tuple[str, Json]]:
    known: Counter[str] = Counter()
    for transcript in read_transcripts(RECORDINGS / "api.jsonl.xz"):
        for step in transcript["steps"]:
            request, expected = step.get("request") or {}, step.get("expect") or {}
            is_created = request.get("method") == "POST" and expected.get("status") == 201
            if not is_created or not isinstance(request.get("body"), dict) or request.get("query"):
                continue
            text = json.dumps([request["path"], request["body"]]).replace("{run}", RUN)
            path, body = json.loads(text)
            plural = path.rpartition("/")[2]
            if (
                plural in _NOT_STORED
                or re.search(r"\{\w+\}", text)
                or (path != _NAMESPACES and known[plural] == OF_KIND_MAX)
            ):
                continue  # not stored, or a value of an earlier answer is missing here, or there are enough
            known[plural] += 1
            yield path, body


def create(client: Any, path: str, body: Json) -> bool:
    """Whether the object was created. A custom kind is served some time after its definition."""
    answer = client.call({"method": "POST", "path": path, "body": body})
    if answer.status == 201 and path == _DEFINITIONS:
        version = body["spec"]["versions"][0]["name"]
        served = f"/apis/{body['spec']['group']}/{version}/{body['spec']['names']['plural']}"
        ends_s = time.monotonic() + ESTABLISHED_S_MAX
        while client.call({"method": "GET", "path": served}).status != 200 and time.monotonic() < ends_s:
            time.sleep(0.2)
    if answer.status not in (201, 409):  # 409: a transcript deletes and creates it again
        click.echo(f"not created: {path}: {answer.status} {answer.data[:300]!r}")
    return bool(answer.status == 201)


def served_objects(client: Any) -> dict[str, Json]:
    """The objects of every kind that we serve and of every custom kind, by their paths."""
    found: dict[str, Json] = {}
    collections = [collection_path(kind, "") for kind in all_kinds()]
    for definition in client.call({"method": "GET", "path": _DEFINITIONS}).body["items"]:
        spec = definition["spec"]
        collections += [
            f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}" for version in spec["versions"]
        ]
    for collection in collections:
        listing = client.call({"method": "GET", "path": collection}).body
        root, _, plural = collection.rpartition("/")
        kind = {"kind": listing["kind"].removesuffix("List"), "apiVersion": listing["apiVersion"]}
        for item in listing["items"]:
            namespace = item["metadata"].get("namespace")
            folder = f"{root}/namespaces/{namespace}/{plural}" if namespace else collection
            found[f"{folder}/{item['metadata']['name']}"] = {**kind, **item}
    return found


async def stored_values(etcd: str) -> dict[str, bytes]:
    async with await EtcdStore.open(etcd, SystemClock()) as store:
        page = await store.list("/registry/")
        return {record.key: record.value for record in page.records}


@click.command(help=__doc__)
@recorder_options
@click.option(
    "--etcd", required=True, metavar="ADDRESS", help="The etcd of that cluster, such as http://127.0.0.1:2379."
)
def main(names: tuple[str, ...], kubeconfig: Path, output: Path, etcd: str) -> None:
    if names:
        raise click.UsageError("there are no names here: everything is recorded")
    target = target_of(kubeconfig)
    client = api_player.Client(target.server, target.token, insecure=True)
    made = sum([create(client, path, body) for path, body in creations()])
    values = run_real(stored_values(etcd))
    name = "json" if sum(value.startswith(b"{") for value in values.values()) > len(values) / 2 else "protobuf"
    part = {
        "name": name,
        "recorded": {"version": target.version},
        "served": served_objects(client),
        "values": {key: base64.b64encode(value).decode() for key, value in values.items()},
    }
    file = RECORDINGS / FILE
    others = (
        [transcript for transcript in read_transcripts(file) if transcript["name"] != name] if file.exists() else []
    )
    output.mkdir(parents=True, exist_ok=True)
    write_transcripts(output / FILE, sorted([*others, part], key=lambda transcript: str(transcript["name"])))
    click.echo(f"{name}: created {made} objects, recorded {len(values)} keys of {target.version}")


if __name__ == "__main__":
    main()
