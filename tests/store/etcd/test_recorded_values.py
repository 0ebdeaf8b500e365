"""Values stored by a real kube-apiserver are served as by that server, and a label patch changes only the label.

`tests/recordings/storage.jsonl.xz` has all keys and values of an etcd after kube-apiserver created objects of every
kind, once as protobuf and once as JSON, and its responses for them (`tools/record_storage.py`).
"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import all_kinds
from mooring.apiserver.storage.foreign_values import read_stored_value
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.store.etcd.store import EtcdStore
from tests.apiserver.http.served import Served, served
from tests.store.etcd.builders import QUICK, Etcd
from tests.waiting import until
from tools.record import RECORDINGS, Json, read_transcripts
from tools.record_storage import FILE

LABEL = {"metadata": {"labels": {"new": "label"}}}
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
CUSTOM_KINDS = {"gears", "widgets"}
LABELS_CHANGE_GENERATION = "/endpointslices/"


def recorded(name: str) -> Json:
    return next(part for part in read_transcripts(RECORDINGS / FILE) if part["name"] == name)


@pytest.mark.parametrize("name", ["json", "protobuf"])
def test_recorded_objects_are_served_and_a_label_patch_changes_only_the_label(etcd: Etcd, name: str) -> None:
    part = recorded(name)
    values = {key: base64.b64decode(value) for key, value in part["values"].items()}
    expected: dict[str, Document] = part["served"]
    assert {path.split("/")[-2] for path in expected} == {kind.plural for kind in all_kinds()} | CUSTOM_KINDS

    async def scenario() -> None:
        async with await EtcdStore.open(etcd.url, SystemClock(), QUICK) as raw:
            for key, value in values.items():
                await raw.put(key, value)
            async with (
                await EtcdStore.open(etcd.url, SystemClock(), QUICK, read_stored_value) as store,
                served(store=store) as server,
            ):
                await until(lambda: {each.kind.plural for each in server.api_server.resources} >= CUSTOM_KINDS)
                for path, document in expected.items():
                    assert _comparable(await _get(server, path)) == _comparable(document), path
                for path, document in expected.items():
                    await _label(server, path)
                    changed = await _get(server, path)
                    assert changed["metadata"]["labels"].pop("new") == "label"
                    if LABELS_CHANGE_GENERATION in path:
                        changed["metadata"]["generation"] -= 1
                    assert _unmanaged(changed) == _unmanaged(document), path
            kept = {record.key for record in (await raw.list("/registry/")).records}
            assert kept >= values.keys()

    run_real(scenario())


async def _get(server: Served, path: str) -> Document:
    async with server.session.get(server.url(path)) as response:
        assert response.status == 200, f"{path}: {await response.text()}"
        document: Document = await response.json()
        return document


async def _label(server: Served, path: str) -> None:
    async with server.session.patch(server.url(path), json=LABEL, headers=MERGE_PATCH) as response:
        assert response.status == 200, f"{path}: {await response.text()}"


def _comparable(value: Any) -> Any:
    """Without resourceVersions; an empty list that Go always writes is null in our store, as in protobuf."""
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items() if name != "resourceVersion"}
    return [_comparable(each) for each in value] or None if isinstance(value, list) else value


def _unmanaged(document: Document) -> Any:
    """Without the entry that a change adds to the managed fields, and without an empty map of labels."""
    metadata = {**document["metadata"], "labels": document["metadata"].get("labels") or {}}
    metadata.pop("managedFields", None)
    return _comparable({**document, "metadata": metadata})
