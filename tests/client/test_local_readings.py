from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client import local_pods, local_readings
from mooring.client.errors import ConflictError
from mooring.client.interface import Change, PatchForm, Watch
from mooring.client.local import LocalClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.store.memory import MemoryStore

PLAIN: dict[str, object] = {
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": 'quoted ","spec":{ text'}},
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}], "tolerations": []},
    "status": {"phase": "Pending"},
}


def pod(**parts: object) -> dict[str, object]:
    return {**PLAIN, **parts}


CONDITION = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}

PODS = [
    pytest.param(pod(), id="a usual pod"),
    pytest.param({key: part for key, part in PLAIN.items() if key != "status"}, id="without a status"),
    pytest.param(pod(spec={}), id="with an empty spec"),
    pytest.param(pod(spec={"nodeName": "", "containers": []}), id="with a node name that is empty"),
    pytest.param(pod(spec={"schedulingGates": [], "containers": []}), id="with gates that are all gone"),
    pytest.param({"status": {"phase": "Pending"}, **PLAIN}, id="with its status first"),
    pytest.param(pod(status={"nominatedNodeName": "n1", "conditions": [CONDITION]}), id="nominated and refused before"),
    pytest.param(pod(status={"phase": "Pending"}, unknown={"spec": {"a": 1}}), id="with a part that nobody knows"),
    pytest.param(
        pod(spec={"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"a": 1}}}}]}),
        id="with a spec inside of its spec",
    ),
]


@pytest.mark.parametrize("body", PODS)
def test_a_bound_pod_is_the_same_whichever_way_it_is_written(body: dict[str, object]) -> None:
    """Written into the bytes, or taken apart and put together: the same object."""

    async def story() -> None:
        client = LocalClient(MemoryStore(), VirtualClock(), Entropy(1))
        raw = await client.create(POD, "default", body)
        uid = decode_as(Pod, raw).metadata.uid
        apart = local_pods.bound(msgspec.json.decode(raw), "k", uid=uid, node_name='n"1', now="2026-01-01T00:00:00Z")
        await client.bind("default", "web", uid, 'n"1')
        found = msgspec.json.decode(await client.get(POD, "default", "web"))
        assert without_revision(found) == without_revision(apart)

    run(story())


def without_revision(plain: dict[str, Any]) -> dict[str, Any]:
    return {**plain, "metadata": {**plain["metadata"], "resourceVersion": None}}


@pytest.mark.parametrize("body", PODS)
def test_the_view_of_a_bound_pod_is_what_decoding_gives(body: dict[str, object]) -> None:
    async def story() -> None:
        client = LocalClient(MemoryStore(), VirtualClock(), Entropy(1))
        async with client.watch(POD, since="1", bookmarks=False) as watch:
            await client.create(POD, "default", body)
            (added,) = await watch.next_batch()
            uid = added.view(Pod).metadata.uid
            await client.patch(POD, "default", "web", {"metadata": {"labels": {"a": "b"}}}, form=PatchForm.MERGE)
            (patched,) = await watch.next_batch()
            assert patched.view(Pod).metadata.labels["a"] == "b"
            await client.bind("default", "web", uid, "n1")
            (bound,) = await watch.next_batch()
            assert (bound.change, bound.view(Pod).spec.node_name) == (Change.MODIFIED, "n1")
            assert bound.view(Pod) == decode_as(Pod, bound.raw)

    run(story())


def test_decoding_is_spared_where_the_pod_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        client = LocalClient(MemoryStore(), VirtualClock(), Entropy(1))
        async with client.watch(POD, since="1", bookmarks=False) as watch:
            await client.create(POD, "default", PLAIN)
            uid = await uid_of_next(watch)
            await client.bind("default", "web", uid, "n1")
            monkeypatch.setattr(local_readings, "decode_as", None)  # whoever decodes now, fails
            (bound,) = await watch.next_batch()
            assert bound.view(Pod).spec.node_name == "n1"

    run(story())


async def uid_of_next(watch: Watch) -> str:
    (event,) = await watch.next_batch()
    return event.view(Pod).metadata.uid


@pytest.mark.parametrize(
    ("body", "uid", "text"),
    [
        (pod(spec={"nodeName": "n2"}), "", 'pod web is already assigned to node "n2"'),
        (pod(spec={"schedulingGates": [{"name": "g"}]}), "", "pod web has non-empty .spec.schedulingGates"),
        (pod(), "another", "Precondition failed: UID in precondition: another"),
    ],
)
def test_who_may_not_be_bound_is_looked_at_closely(body: dict[str, object], uid: str, text: str) -> None:
    async def story() -> None:
        client = LocalClient(MemoryStore(), VirtualClock(), Entropy(1))
        await client.create(POD, "default", body)
        with pytest.raises(ConflictError) as raised:
            await client.bind("default", "web", uid, "n1")
        assert text in str(raised.value)

    run(story())
