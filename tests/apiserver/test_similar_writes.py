"""Similar objects written in sequence: each is admitted and validated on its own."""

from __future__ import annotations

from typing import cast

import pytest

from mooring.api.kinds import (
    EVENT,
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
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.errors import ClientError, ConflictError, ForbiddenError, InvalidError, NotFoundError
from mooring.client.interface import PatchForm
from tests.api_servers import with_api_server
from tests.client.objects import Body, at, node, pod, read, text_at

NS = "default"
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "11111111-2222-4333-8444-555555555555",
    "controller": True,
}


def replica() -> Body:
    return pod("", labels={"app": "web"}, generateName="web-", ownerReferences=[OWNER])


def workload(name: str, labels: dict[str, str], **metadata: object) -> Body:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.9"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name, "labels": labels, **metadata}, "spec": spec}


async def reported_status(client: LoopbackClient, kind: Kind, name: str, status: Body, revision: str = "") -> bytes:
    """Read the object, change it and update its status, as controllers do."""
    whole = read(await client.get(kind, NS, name))
    if revision:
        metadata = cast("dict[str, object]", whole["metadata"])
        whole["metadata"] = {**metadata, "annotations": {"deployment.kubernetes.io/revision": revision}}
    return await client.update(kind, NS, name, {**whole, "status": status}, subresource="status")


async def patched(client: LoopbackClient, kind: Kind, ns: str, name: str, patch: Body, subresource: str = "") -> bytes:
    return await client.patch(kind, ns, name, patch, form=PatchForm.STRATEGIC, subresource=subresource)


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
def test_admission_applies_new_policies_immediately(kind: Kind, body: Body, expected: tuple[str, str]) -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        for _ in range(2):
            await client.create(POD, NS, replica())
        await client.create(kind, NS if kind.is_namespaced else "", body)
        for _ in range(2):
            made = await client.create(POD, NS, replica())
            assert expected[1] in str(at(made, expected[0]))

    with_api_server(scenario)


@pytest.mark.parametrize("value", ["web-1-", ".web-.1.", "web-1a-", "-web-1a", "web 1a", "x" * 64])
def test_an_invalid_label_is_rejected_after_a_valid_one(value: str) -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        for _ in range(3):
            await client.create(POD, NS, pod("", labels={"app": "web-1a"}, generateName="web-"))
        with pytest.raises(InvalidError, match=r"metadata\.labels"):
            await client.create(POD, NS, pod("", labels={"app": value}, generateName="web-"))

    with_api_server(scenario)


def test_quotas_are_charged_for_each_pod() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        hard = {"pods": "2"}
        await client.create(RESOURCE_QUOTA, NS, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
        counted: Body = {"status": {"hard": hard, "used": {"pods": "0"}}}
        await client.patch(RESOURCE_QUOTA, NS, "few", counted, form=PatchForm.MERGE, subresource="status")
        for _ in range(2):
            await client.create(POD, NS, replica())
        with pytest.raises(ForbiddenError, match="exceeded quota: few"):
            await client.create(POD, NS, replica())

    with_api_server(scenario)


def test_a_terminating_namespace_accepts_no_pod() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        await client.create(NAMESPACE, "", {"metadata": {"name": "short-lived", "finalizers": ["example.com/wait"]}})
        account: Body = {"metadata": {"name": "default"}}
        await client.create(SERVICE_ACCOUNT, "short-lived", account)
        for _ in range(2):
            await client.create(POD, "short-lived", replica())
        await client.delete(NAMESPACE, "", "short-lived")
        with pytest.raises(ForbiddenError, match="because it is being terminated"):
            await client.create(POD, "short-lived", replica())

    with_api_server(scenario)


@pytest.mark.parametrize(
    ("patch", "error"),
    [
        pytest.param({"metadata": {"uid": "99999999-9999-4999-8999-999999999999"}}, InvalidError, id="another uid"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, ConflictError, id="another resource version"),
    ],
)
def test_preconditions_are_checked_for_each_patch(patch: Body, error: type[ClientError]) -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        names = [text_at(await client.create(POD, NS, replica()), "metadata.name") for _ in range(3)]
        for name in names[:2]:
            await patched(client, POD, NS, name, {"status": {"message": "well"}}, "status")
        with pytest.raises(error):
            await patched(client, POD, NS, names[2], {**patch, "status": {"message": "well"}}, "status")

    with_api_server(scenario)


def test_a_patch_may_contain_a_resource_version() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        for number in (1, 2, 3):
            made = await client.create(NODE, "", node(f"node-{number}"))
            taints = {"taints": [{"key": "a", "effect": "NoSchedule"}]}
            metadata = {"resourceVersion": text_at(made, "metadata.resourceVersion")}
            changed = await patched(client, NODE, "", f"node-{number}", {"metadata": metadata, "spec": taints})
            assert at(changed, "spec") == taints
            assert text_at(changed, "metadata.resourceVersion") != metadata["resourceVersion"]
            with pytest.raises(ConflictError):
                await patched(client, NODE, "", f"node-{number}", {"metadata": metadata, "spec": {"taints": None}})

    with_api_server(scenario)


def test_a_pod_that_does_not_exist_cannot_be_patched() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        with pytest.raises(NotFoundError):
            await patched(client, POD, NS, "missing", {"status": {}}, "status")

    with_api_server(scenario)


def test_a_pod_is_removed_with_its_last_finalizer() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        for _ in range(3):
            body = replica()
            metadata = cast("dict[str, object]", body["metadata"])
            body["metadata"] = {**metadata, "finalizers": ["example.com/wait"]}
            name = text_at(await client.create(POD, NS, body), "metadata.name")
            await client.delete(POD, NS, name)
            await patched(client, POD, NS, name, {"metadata": {"finalizers": None}})
            with pytest.raises(NotFoundError):
                await client.get(POD, NS, name)

    with_api_server(scenario)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"app": "web-2"}, id="another value"),
        pytest.param({"app": "tester"}, id="the name of the field manager"),
    ],
)
def test_labels_and_field_managers_are_independent(changed: dict[str, str]) -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        for labels in ({"app": "web-1"}, changed):
            made = read(await client.create(POD, NS, pod("", labels=labels, generateName="web-")))
            assert at(made, "metadata.labels") == labels
            [entry] = cast("list[dict[str, str]]", at(made, "metadata.managedFields"))
            assert entry["manager"] == "tester"

    with_api_server(scenario)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        pytest.param({"status": {"replicas": -1}}, InvalidError, id="a negative count"),
        pytest.param(
            {"metadata": {"name": "shop-3", "resourceVersion": "1"}}, ConflictError, id="another resource version"
        ),
    ],
)
def test_an_invalid_status_is_rejected_after_valid_ones(changed: Body, error: type[ClientError]) -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        for number in (1, 2, 3):
            name = f"shop-{number}"
            await client.create(REPLICA_SET, NS, workload(name, {"app": name}))
            await reported_status(client, REPLICA_SET, name, {"replicas": 1})
        whole = read(await client.get(REPLICA_SET, NS, "shop-3"))
        for _ in range(2):
            with pytest.raises(error):
                await client.update(REPLICA_SET, NS, "shop-3", {**whole, **changed}, subresource="status")

    with_api_server(scenario)


def test_a_status_update_ignores_the_spec() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        for number in (1, 2, 3):
            name = f"shop-{number}"
            await client.create(REPLICA_SET, NS, workload(name, {"app": name}))
            whole = read(await client.get(REPLICA_SET, NS, name))
            spec = cast("dict[str, object]", whole["spec"])
            sent = {**whole, "spec": {**spec, "replicas": 7}, "status": {"replicas": 1}}
            shown = await client.update(REPLICA_SET, NS, name, sent, subresource="status")
            assert (at(shown, "spec.replicas"), at(shown, "status.replicas")) == (2, 1)

    with_api_server(scenario)


@pytest.mark.parametrize("first", ["tester", "somebody"])
def test_an_object_may_have_the_name_of_its_field_manager(first: str) -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        for name in (first, "other", "third"):
            uid = text_at(await client.create(POD, NS, pod(name)), "metadata.uid")
            patched_pod = read(await patched(client, POD, NS, name, {"status": {"message": "well"}}, "status"))
            shown = read(await client.create(EVENT, NS, event(name, uid, "well")))
            for made in (patched_pod, shown):
                entries = cast("list[dict[str, str]]", at(made, "metadata.managedFields"))
                assert {entry["manager"] for entry in entries} == {"tester"}

    with_api_server(scenario)


def test_each_pod_gets_a_unique_name_uid_and_resource_version() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        made = [read(await client.create(POD, NS, replica())) for _ in range(5)]
        assert len({text_at(each, "metadata.name") for each in made}) == 5
        assert len({text_at(each, "metadata.uid") for each in made}) == 5
        assert len({text_at(each, "metadata.resourceVersion") for each in made}) == 5

    with_api_server(scenario)
