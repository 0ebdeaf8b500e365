"""What is written for a twin is what the registry would have written."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

import pytest

from mooring.api.kinds import (
    CORE_EVENT,
    DEPLOYMENT,
    EVENT,
    LEASE,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    RESOURCE_QUOTA,
    SERVICE_ACCOUNT,
    Kind,
)
from mooring.apiserver.access.users import User
from mooring.apiserver.desk import Desk
from mooring.apiserver.inside import InsideClient
from mooring.apiserver.registry import create, patches, put
from mooring.client.errors import ClientError, ConflictError, ForbiddenError, InvalidError, NotFoundError
from mooring.client.interface import PatchForm
from mooring.client.local import LocalClient
from mooring.kit.entropy import Entropy
from tests.apiserver.desks import with_desk
from tests.client.objects import Body, at, node, pod, read, text_at

NS = "default"
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "11111111-2222-4333-8444-555555555555",
    "controller": True,
}
GetClient = Callable[[], InsideClient]


def replica() -> Body:
    return pod("", labels={"app": "web"}, generateName="web-", ownerReferences=[OWNER])


def status_of(uid: str, number: int, now: str) -> Body:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": now, "reason": None}
    container = {
        "name": "main",
        "state": {"running": {"startedAt": now}},
        "ready": True,
        "restartCount": 0,
        "image": "registry.k8s.io/pause:3.9",
        "imageID": "",
        "containerID": f"mooring://{number:064x}",
    }
    status = {
        "phase": "Running",
        "startTime": now,
        "podIP": f"10.0.{number}.2",
        "podIPs": [{"ip": f"10.0.{number}.2"}],
        "hostIP": f"172.16.0.{number}",
        "hostIPs": [{"ip": f"172.16.0.{number}"}],
        "conditions": [condition],
        "containerStatuses": [container],
    }
    return {"metadata": {"uid": uid}, "status": status}


async def live(desk: Desk, client: GetClient) -> list[tuple[Kind, str]]:
    """What a ReplicaSet, a scheduler and kubelets write, three times; returns what there is then."""
    made: list[tuple[Kind, str]] = []
    for number in (1, 2, 3):
        await client().create(NODE, "", node(f"node-{number}"))
        await client().create(LEASE, "kube-system", lease(f"node-{number}"))
        body = replica()
        name = text_at(await client().create(POD, NS, body), "metadata.name")
        uid = text_at(await client().get(POD, NS, name), "metadata.uid")
        await client().create(EVENT, NS, event(name, uid, f"Assigned {name} to node-{number}"), is_answer_wanted=False)
        await client().create(CORE_EVENT, NS, core_event(name, uid), is_answer_wanted=False)
        await client().bind(NS, name, uid, f"node-{number}")
        await desk.clock.wait(1.0)
        now = f"2026-01-01T00:00:0{number}Z"
        for _ in range(2):  # the second time nothing is new
            await patched(client(), POD, NS, name, status_of(uid, number, now), "status")
        not_ready = {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": now}]}
        await patched(client(), POD, NS, name, {"status": not_ready}, "status")
        for turn in (1, 2):
            renewed: Body = {"spec": {"renewTime": f"2026-01-01T00:0{turn}:0{number}.123456Z"}}
            await client().patch(LEASE, "kube-system", f"node-{number}", renewed, form=PatchForm.MERGE)
        tainted: Body = {"spec": {"taints": [{"key": "k", "effect": "NoExecute", "timeAdded": now}]}}
        await patched(client(), NODE, "", f"node-{number}", tainted)
        made += [(POD, name), (NODE, f"node-{number}"), (LEASE, f"node-{number}")]
        made += [(EVENT, f"{name}.1"), (CORE_EVENT, f"{name}.2")]
        made += await live_of_a_deployment(client, number, now)
    return made


async def live_of_a_deployment(client: GetClient, number: int, now: str) -> list[tuple[Kind, str]]:
    """What its two controllers write."""
    name, hashed = f"shop-{number}", f"84885777{number}d"
    made = read(await client().create(DEPLOYMENT, NS, workload(name, {"app": name})))
    owner = {**OWNER, "kind": "Deployment", "name": name, "uid": at(made, "metadata.uid")}
    labels = {"app": name, "pod-template-hash": hashed}
    await client().create(REPLICA_SET, NS, workload(f"{name}-{hashed}", labels, ownerReferences=[owner]))
    for ready in (0, 2, 2):  # the third time nothing is new
        counts: Body = {"replicas": 2, "readyReplicas": ready, "observedGeneration": 1}
        await told_status(client(), REPLICA_SET, f"{name}-{hashed}", counts)
        progress = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}
        told = {"message": f'ReplicaSet "{name}-{hashed}" is progressing.', "lastUpdateTime": now}
        conditions = [{**progress, **told, "lastTransitionTime": now}]
        await told_status(client(), DEPLOYMENT, name, {**counts, "conditions": conditions}, revision="1")
    return [(DEPLOYMENT, name), (REPLICA_SET, f"{name}-{hashed}")]


def workload(name: str, labels: dict[str, str], **metadata: object) -> Body:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.9"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name, "labels": labels, **metadata}, "spec": spec}


async def told_status(client: InsideClient, kind: Kind, name: str, status: Body, revision: str = "") -> bytes:
    """Read, changed and written back, as controllers do it."""
    whole = read(await client.get(kind, NS, name))
    if revision:
        metadata = cast("dict[str, object]", whole["metadata"])
        whole["metadata"] = {**metadata, "annotations": {"deployment.kubernetes.io/revision": revision}}
    return await client.update(kind, NS, name, {**whole, "status": status}, subresource="status")


async def patched(client: InsideClient, kind: Kind, ns: str, name: str, patch: Body, subresource: str = "") -> bytes:
    return await client.patch(kind, ns, name, patch, form=PatchForm.STRATEGIC, subresource=subresource)


def lease(name: str) -> Body:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def event(name: str, uid: str, note: str) -> Body:
    return {
        "metadata": {"name": f"{name}.1", "namespace": NS},
        "eventTime": "2026-01-01T00:00:00.500000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": NS, "name": name, "uid": uid},
        "note": note,
        "type": "Normal",
    }


def core_event(name: str, uid: str) -> Body:
    return {
        "metadata": {"name": f"{name}.2", "namespace": NS},
        "involvedObject": {"kind": "Pod", "namespace": NS, "name": name, "uid": uid},
        "reason": "Started",
        "message": f'it is called "{name}"',
        "type": "Normal",
    }


def is_registry_asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The verbs for which the registry was asked."""
    asked: list[str] = []
    create_as_ever, patch_as_ever, put_as_ever = create.create, patches.patch, put.put

    async def creating(*arguments: object) -> object:
        asked.append("create")
        return await create_as_ever(*arguments)  # type: ignore[arg-type]

    async def patching(*arguments: object) -> object:
        asked.append("patch")
        return await patch_as_ever(*arguments)  # type: ignore[arg-type]

    async def putting(*arguments: object) -> object:
        asked.append("put")
        return await put_as_ever(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(create, "create", creating)
    monkeypatch.setattr(put, "put", putting)
    monkeypatch.setattr(patches, "patch", patching)
    return asked


def played(*, is_long_way: bool) -> list[str]:
    """All that was stored, with numbers in place of what is chance. The long way: nobody remembers anything."""
    found: list[str] = []

    async def scenario(desk: Desk, client: InsideClient) -> None:
        def new_client() -> InsideClient:
            return InsideClient(desk, LocalClient(desk.store, desk.clock, Entropy(3)), User("tester"), "tester")

        made = await live(desk, new_client if is_long_way else lambda: client)
        names: dict[str, str] = {}
        for kind, name in made:
            raw = (await client.get(kind, "kube-system" if kind is LEASE else NS, name)).decode()
            found.append(CHANCE.sub(lambda match: names.setdefault(match[0], f"<{len(names)}>"), raw))

    with_desk(scenario)
    return found


CHANCE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=web-)\w{5}|(?<=access-)\w{5}")


def test_twins_are_stored_as_the_registry_would_store_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = is_registry_asked(monkeypatch)
    the_long_way = played(is_long_way=True)
    asked_by_all = len(asked)
    assert played(is_long_way=False) == the_long_way
    assert len(asked) - asked_by_all < asked_by_all * 2 / 3, "nothing was learnt"


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        pytest.param(
            LIMIT_RANGE,
            {
                "metadata": {"name": "limits"},
                "spec": {"limits": [{"type": "Container", "default": {"cpu": "100m"}}]},
            },
            ("spec.containers", "100m"),
            id="a limit range",
        ),
        pytest.param(
            PRIORITY_CLASS,
            {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True},
            ("spec.priority", "7"),
            id="a default priority",
        ),
    ],
)
def test_what_is_new_around_a_twin_counts(kind: Kind, body: Body, expected: tuple[str, str]) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        for _ in range(2):
            await client.create(POD, NS, replica())
        await client.create(kind, NS if kind.is_namespaced else "", body)
        for _ in range(2):
            made = await client.create(POD, NS, replica())
            assert expected[1] in str(at(made, expected[0]))

    with_desk(scenario)


def test_quotas_are_charged_for_each() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        hard = {"pods": "2"}
        await client.create(RESOURCE_QUOTA, NS, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
        counted: Body = {"status": {"hard": hard, "used": {"pods": "0"}}}
        await client.patch(RESOURCE_QUOTA, NS, "few", counted, form=PatchForm.MERGE, subresource="status")
        for _ in range(2):
            await client.create(POD, NS, replica())
        with pytest.raises(ForbiddenError, match="exceeded quota: few"):
            await client.create(POD, NS, replica())

    with_desk(scenario)


def test_nothing_comes_into_a_namespace_that_goes() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        await client.create(NAMESPACE, "", {"metadata": {"name": "short-lived", "finalizers": ["example.com/wait"]}})
        account: Body = {"metadata": {"name": "default"}}
        await client.create(SERVICE_ACCOUNT, "short-lived", account)
        for _ in range(2):
            await client.create(POD, "short-lived", replica())
        await client.delete(NAMESPACE, "", "short-lived")
        with pytest.raises(ForbiddenError, match="because it is being terminated"):
            await client.create(POD, "short-lived", replica())

    with_desk(scenario)


@pytest.mark.parametrize(
    ("patch", "error"),
    [
        pytest.param({"metadata": {"uid": "99999999-9999-4999-8999-999999999999"}}, InvalidError, id="another uid"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, ConflictError, id="another state"),
    ],
)
def test_a_condition_is_kept(patch: Body, error: type[ClientError]) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        names = [text_at(await client.create(POD, NS, replica()), "metadata.name") for _ in range(3)]
        for name in names[:2]:
            await patched(client, POD, NS, name, {"status": {"message": "well"}}, "status")
        with pytest.raises(error):
            await patched(client, POD, NS, names[2], {**patch, "status": {"message": "well"}}, "status")

    with_desk(scenario)


def test_a_patch_for_the_state_that_is_there_is_a_twin_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = is_registry_asked(monkeypatch)

    async def scenario(desk: Desk, client: InsideClient) -> None:
        for number in (1, 2, 3):
            made = await client.create(NODE, "", node(f"node-{number}"))
            taints = {"taints": [{"key": "a", "effect": "NoSchedule"}]}
            metadata = {"resourceVersion": text_at(made, "metadata.resourceVersion")}
            changed = await patched(client, NODE, "", f"node-{number}", {"metadata": metadata, "spec": taints})
            assert at(changed, "spec") == taints
            assert text_at(changed, "metadata.resourceVersion") != metadata["resourceVersion"]
            with pytest.raises(ConflictError):
                await patched(client, NODE, "", f"node-{number}", {"metadata": metadata, "spec": {"taints": None}})

    with_desk(scenario)
    assert asked.count("patch") == 1 + 3, "one to learn from, and those that are refused"


def test_who_is_not_there_cannot_be_patched() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        with pytest.raises(NotFoundError):
            await patched(client, POD, NS, "nobody", {"status": {}}, "status")

    with_desk(scenario)


def test_a_pod_that_only_waited_for_its_finalizer_goes_with_it() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        for _ in range(3):
            body = replica()
            metadata = cast("dict[str, object]", body["metadata"])
            body["metadata"] = {**metadata, "finalizers": ["example.com/wait"]}
            name = text_at(await client.create(POD, NS, body), "metadata.name")
            await client.delete(POD, NS, name)
            await patched(client, POD, NS, name, {"metadata": {"finalizers": None}})
            with pytest.raises(NotFoundError):
                await client.get(POD, NS, name)

    with_desk(scenario)


def test_sets_that_differ_in_their_names_only_are_twins_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = is_registry_asked(monkeypatch)

    async def scenario(desk: Desk, client: InsideClient) -> None:
        for number in (1, 2, 3):
            owner = {**OWNER, "name": f"shop-{number}", "uid": f"11111111-2222-4333-8444-00000000000{number}"}
            labels = {"app": f"shop-{number}", "pod-template-hash": f"84885777{number}d"}
            body = pod("", labels=labels, generateName=f"shop-{number}-", ownerReferences=[owner])
            made = read(await client.create(POD, NS, body))
            assert at(made, "metadata.labels") == labels
            assert at(made, "metadata.ownerReferences") == [owner]
            assert text_at(made, "metadata.name").startswith(f"shop-{number}-")

    with_desk(scenario)
    assert asked == ["create"]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"app": "web-2"}, id="another name"),
        pytest.param({"app": "tester"}, id="a label that is called like a manager"),
    ],
)
def test_a_label_is_exchanged_only_if_it_is_nothing_but_a_name(changed: dict[str, str]) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        for labels in ({"app": "web-1"}, changed):
            made = read(await client.create(POD, NS, pod("", labels=labels, generateName="web-")))
            assert at(made, "metadata.labels") == labels
            [entry] = cast("list[dict[str, str]]", at(made, "metadata.managedFields"))
            assert entry["manager"] == "tester"

    with_desk(scenario)


def test_what_controllers_write_of_a_workload_is_learnt_from_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = is_registry_asked(monkeypatch)

    async def scenario(desk: Desk, client: InsideClient) -> None:
        for number in range(1, 9):
            await live_of_a_deployment(lambda: client, number, "2026-01-01T00:00:00Z")

    with_desk(scenario)
    statuses_of_each, orders_of_its_uids = 6, 2
    assert 0 < asked.count("put") <= statuses_of_each * orders_of_its_uids
    assert asked.count("create") == 8 + 1, "each Deployment, which comes from somebody else, and one set"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        pytest.param({"status": {"replicas": -1}}, InvalidError, id="a count below zero"),
        pytest.param({"metadata": {"name": "shop-3", "resourceVersion": "1"}}, ConflictError, id="another state"),
    ],
)
def test_a_status_that_is_refused_is_refused_to_a_twin(changed: Body, error: type[ClientError]) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        for number in (1, 2, 3):
            name = f"shop-{number}"
            await client.create(REPLICA_SET, NS, workload(name, {"app": name}))
            await told_status(client, REPLICA_SET, name, {"replicas": 1})
        whole = read(await client.get(REPLICA_SET, NS, "shop-3"))
        for _ in range(2):
            with pytest.raises(error):
                await client.update(REPLICA_SET, NS, "shop-3", {**whole, **changed}, subresource="status")

    with_desk(scenario)


def test_a_spec_that_comes_with_a_status_is_left_out_for_each_twin() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        for number in (1, 2, 3):
            name = f"shop-{number}"
            await client.create(REPLICA_SET, NS, workload(name, {"app": name}))
            whole = read(await client.get(REPLICA_SET, NS, name))
            spec = cast("dict[str, object]", whole["spec"])
            sent = {**whole, "spec": {**spec, "replicas": 7}, "status": {"replicas": 1}}
            told = await client.update(REPLICA_SET, NS, name, sent, subresource="status")
            assert (at(told, "spec.replicas"), at(told, "status.replicas")) == (2, 1)

    with_desk(scenario)


@pytest.mark.parametrize("first", ["tester", "somebody"])
def test_who_is_called_like_his_manager_has_no_twins(first: str) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        for name in (first, "other", "third"):
            uid = text_at(await client.create(POD, NS, pod(name)), "metadata.uid")
            patched_pod = read(await patched(client, POD, NS, name, {"status": {"message": "well"}}, "status"))
            told = read(await client.create(EVENT, NS, event(name, uid, "well")))
            for made in (patched_pod, told):
                entries = cast("list[dict[str, str]]", at(made, "metadata.managedFields"))
                assert {entry["manager"] for entry in entries} == {"tester"}

    with_desk(scenario)


def test_each_gets_a_name_and_a_uid_of_its_own() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        made = [read(await client.create(POD, NS, replica())) for _ in range(5)]
        assert len({text_at(each, "metadata.name") for each in made}) == 5
        assert len({text_at(each, "metadata.uid") for each in made}) == 5
        assert len({text_at(each, "metadata.resourceVersion") for each in made}) == 5

    with_desk(scenario)
