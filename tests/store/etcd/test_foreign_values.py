"""An etcd that kube-apiserver wrote: recorded and foreign values are read without loss, or the store does not open."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import all_kinds
from mooring.apiserver.storage.foreign_values import read_stored_value
from mooring.cluster.cluster import _open_store
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.store.etcd.store import EtcdStore
from mooring.store.interface import ValueUnreadable
from tests.apiserver.http.served import Served, served
from tests.apiserver.storage import kube_objects as kube
from tests.apiserver.storage.kube_objects import protobuf_value
from tests.store.etcd.builders import QUICK, Etcd
from tests.waiting import until
from tools.record import RECORDINGS, Json, read_transcripts
from tools.record_storage import FILE

POD_KEY = "/registry/pods/default/web"
CRD_KEY = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
WIDGET_KEY = "/registry/example.com/widgets/default/small"
POD_URL = "/api/v1/namespaces/default/pods/web"
SECRET_URL = "/api/v1/namespaces/default/secrets/key"
DEPLOYMENT_URL = "/apis/apps/v1/namespaces/default/deployments/web"
CRD_URL = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
WIDGET_URL = "/apis/example.com/v1/namespaces/default/widgets/small"


def go_json(document: Document) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(
    ("definition", "widget"),
    [
        pytest.param(kube.ONE_VERSION, kube.WIDGET, id="with a schema"),
        pytest.param(kube.OLDEST, kube.WIDGET_WITHOUT_SCHEMA, id="without a schema"),
    ],
)
def test_a_label_patch_changes_only_the_label(etcd: Etcd, definition: Document, widget: Document) -> None:
    values = {
        POD_KEY: protobuf_value(kube.POD),
        "/registry/secrets/default/key": protobuf_value(kube.SECRET),
        "/registry/deployments/default/web": protobuf_value(kube.DEPLOYMENT),
        CRD_KEY: go_json(definition),
        WIDGET_KEY: go_json(widget),
    }

    async def scenario() -> None:
        await _fill(etcd, values)
        async with _open_store(None, etcd.url, SystemClock()) as store, served(store=store) as server:
            for url in (POD_URL, SECRET_URL, DEPLOYMENT_URL, CRD_URL, WIDGET_URL):
                before = await _get(server, url)
                await _label(server, url)
                after = await _get(server, url)
                assert after["metadata"]["labels"]["new"] == "label"
                assert _without_changes(after) == _without_changes(before), url
            found = await _get(server, WIDGET_URL)
            for name in widget.keys() - {"metadata"}:
                assert found[name] == widget[name]

    run_real(scenario())


def test_a_store_with_an_unreadable_value_is_not_opened(etcd: Etcd) -> None:
    async def scenario() -> None:
        await _fill(etcd, {POD_KEY: b"k8s:enc:aescbc:v1:key:abc"})
        with pytest.raises(ValueUnreadable, match=POD_KEY):
            async with _open_store(None, etcd.url, SystemClock()):
                pass
        async with await EtcdStore.open(etcd.url, SystemClock(), QUICK) as store:
            found = await store.get(POD_KEY)
            assert found is not None
            assert found.value == b"k8s:enc:aescbc:v1:key:abc"

    run_real(scenario())


def test_the_mirror_continues_when_an_unreadable_value_is_replaced(etcd: Etcd) -> None:
    async def scenario() -> None:
        async with (
            await EtcdStore.open(etcd.url, SystemClock(), QUICK, read_stored_value) as store,
            await EtcdStore.open(etcd.url, SystemClock(), QUICK) as other,
        ):
            await other.put(POD_KEY, b"unreadable")
            await until(lambda: store.statistics()["reconnections"])
            assert store.peek(POD_KEY) is None
            await other.put(POD_KEY, protobuf_value(kube.POD))
            found = await store.get(POD_KEY)
            assert found is not None
            assert msgspec.json.decode(found.value)["spec"]["priority"] == -5

    run_real(scenario())


async def _fill(etcd: Etcd, values: dict[str, bytes]) -> None:
    async with await EtcdStore.open(etcd.url, SystemClock(), QUICK) as store:
        for key, value in values.items():
            await store.put(key, value)


async def _get(server: Served, url: str) -> Document:
    async with server.session.get(server.url(url)) as response:
        assert response.status == 200, await response.text()
        document: Document = await response.json()
        return document


async def _label(server: Served, url: str) -> None:
    body = json.dumps({"metadata": {"labels": {"new": "label"}}})
    headers = {"Content-Type": "application/merge-patch+json"}
    async with server.session.patch(server.url(url), data=body, headers=headers) as response:
        assert response.status == 200, await response.text()


def _without_changes(document: Document) -> Document:
    metadata = {**document["metadata"], "labels": {**document["metadata"].get("labels", {})}}
    metadata["labels"].pop("new", None)
    for name in ("resourceVersion", "managedFields"):
        metadata.pop(name, None)
    return {**document, "metadata": metadata}


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
                await until(lambda: {resource.kind.plural for resource in server.api_server.resources} >= CUSTOM_KINDS)
                for path, document in expected.items():
                    assert _comparable(await _get_recorded(server, path)) == _comparable(document), path
                for path, document in expected.items():
                    await _label_recorded(server, path)
                    changed = await _get_recorded(server, path)
                    assert changed["metadata"]["labels"].pop("new") == "label"
                    if LABELS_CHANGE_GENERATION in path:
                        changed["metadata"]["generation"] -= 1
                    assert _unmanaged(changed) == _unmanaged(document), path
            kept = {record.key for record in (await raw.list("/registry/")).records}
            assert kept >= values.keys()

    run_real(scenario())


async def _get_recorded(server: Served, path: str) -> Document:
    async with server.session.get(server.url(path)) as response:
        assert response.status == 200, f"{path}: {await response.text()}"
        document: Document = await response.json()
        return document


async def _label_recorded(server: Served, path: str) -> None:
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
