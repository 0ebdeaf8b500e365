"""Revisions: data, names and order."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONTROLLER_REVISION
from mooring.api.views.workloads import ControllerRevision
from mooring.controllers.revisions import (
    create_revision,
    data_of,
    in_order,
    new_revision,
    renumber_revision,
    revision_data,
    revision_hash,
    revision_name,
    template_of,
)
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.api_servers import open_loopback_client
from tests.controllers.batch_builders import identity, stateful_set_view

POD_SPEC: Document = {
    "containers": [
        {
            "args": ["--x=1"],
            "image": "app:1",
            "imagePullPolicy": "IfNotPresent",
            "name": "c",
            "resources": {"limits": {"cpu": "2"}},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
    ],
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}


def test_the_hash_is_that_of_kube_controller_manager() -> None:
    metadata = {"annotations": {"note": "a<b & c>d ü"}, "labels": {"app": "golden"}}
    data = revision_data({"spec": {"template": {"metadata": metadata, "spec": POD_SPEC}}})
    assert revision_hash(data, 0) == "586fbf7f78"
    assert revision_hash(data, 1) != "586fbf7f78"


def test_the_fields_of_a_revision_are_in_the_order_of_go() -> None:
    data = revision_data({"spec": {"template": {"spec": {"b": [{"z": 1, "y": 2}], "a": 1}, "metadata": {}}}})
    expected = b'{"spec":{"template":{"$patch":"replace","metadata":{},"spec":{"a":1,"b":[{"y":2,"z":1}]}}}}'
    assert msgspec.json.encode(data) == expected


def test_a_revision_gives_the_template_back() -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": POD_SPEC}
    data = revision_data({"spec": {"template": template}})
    assert data["spec"]["template"]["$patch"] == "replace"
    assert template_of(data) == template


@pytest.mark.parametrize(
    ("owner", "expected"),
    [pytest.param("db", "db-h", id="short"), pytest.param("d" * 250, "d" * 223 + "-h", id="long")],
)
def test_names(owner: str, expected: str) -> None:
    assert revision_name(owner, "h") == expected


def test_the_oldest_comes_first() -> None:
    def revision(name: str, number: int, created: str) -> ControllerRevision:
        metadata: Any = {"name": name, "creation_timestamp": created}
        view = ControllerRevision(revision=number)
        return ControllerRevision(metadata=type(view.metadata)(**metadata), revision=number)

    revisions = [revision("c", 2, "2"), revision("b", 1, "5"), revision("a", 1, "5"), revision("d", 1, "1")]
    assert [each.metadata.name for each in in_order(revisions)] == ["d", "a", "b", "c"]


def test_a_name_that_is_taken_is_given_up_for_the_next() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            owner = stateful_set_view()
            data = revision_data({"spec": {"template": {"spec": POD_SPEC}}})
            taken = new_revision(owner, {"other": 1}, 1, revision_name("db", revision_hash(data, 0)), {}, {})
            await client.create(CONTROLLER_REVISION, "default", taken)
            wanted = new_revision(owner, data, 2, "", {"app": "db"}, {"note": "kept"})
            made, collisions = await create_revision(client, "default", wanted, "db", 0)
            assert collisions == 1
            assert made.metadata.name == revision_name("db", revision_hash(data, 1))
            again, collisions = await create_revision(client, "default", wanted, "db", 0)
            assert (again.metadata.uid, collisions) == (made.metadata.uid, 1)
            newest = await renumber_revision(client, made, 7)
            assert (newest.revision, data_of(newest)) == (7, data)
            assert identity("db")["name"] == newest.metadata.owner_references[0].name

    run(main(), clock)
