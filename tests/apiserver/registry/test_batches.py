"""A batch write stores the same bytes and has the same outcomes as single writes, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, LEASE, LIMIT_RANGE, NAMESPACE, NODE, POD, RESOURCE_QUOTA, Kind
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.registry.object_storage import ObjectStorage
from mooring.apiserver.server import ApiServer
from mooring.client.batch_writes import StatusPatch, create_many, named, patch_status_many, renew_leases
from mooring.client.errors import ClientError, NotFoundError, ServerError, StatusError
from mooring.client.interface import PatchForm
from mooring.kit.clock import VIRTUAL_WALL_S, format_rfc3339_micro
from mooring.store.interface import StoreClosed
from mooring.store.memory import MemoryStore
from tests.api_servers import with_api_server
from tests.apiserver.pod_strategies import CHANGES, NAMES, PODS, VALID, changed
from tests.client.objects import at, config_map, node, pod, read, text_at

NS, LEASES = "default", "kube-node-lease"
QUOTA: Document = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}}
COUNTED: Document = {"status": {"hard": {"pods": "2"}, "used": {"pods": "0"}}}
LIMITS: Document = {
    "metadata": {"name": "limits"},
    "spec": {"limits": [{"type": "Container", "default": {"cpu": "100m"}, "max": {"cpu": "1"}}]},
}

Outcomes: TypeAlias = Sequence[bytes | ClientError]
Write: TypeAlias = Callable[[LoopbackClient], Awaitable[Outcomes]]


async def one_by_one(requests: Sequence[Awaitable[bytes]]) -> Outcomes:
    outcomes: list[bytes | ClientError] = []
    for request in requests:
        try:
            outcomes.append(await request)
        except ClientError as error:
            outcomes.append(error)
    return outcomes


def comparable(outcome: bytes | ClientError) -> object:
    if isinstance(outcome, bytes):
        return outcome
    assert isinstance(outcome, StatusError), outcome
    return (type(outcome), outcome.code, outcome.reason, outcome.message, outcome.causes, outcome.details)


def history_of(prepare: Callable[[LoopbackClient], Awaitable[None]], write: Write, kind: Kind) -> list[object]:
    """The outcomes of the writes, and everything that is stored afterwards.

    Both servers draw the same uids and generated names, and virtual time stands still, so that every byte is compared.
    """
    history: list[object] = []

    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        await prepare(client)
        history.extend(comparable(outcome) for outcome in await write(client))
        history.extend((await client.list(kind)).items)

    with_api_server(scenario)
    return history


# --- create_many ----------------------------------------------------------------------------------------------------


def histories_of_pods(
    template: Document, names: Sequence[str], policies: Sequence[str] = (), namespace: str = NS
) -> tuple[list[object], list[object]]:
    """Of a batch, and of single creates."""

    async def prepare(client: LoopbackClient) -> None:
        if "limits" in policies:
            await client.create(LIMIT_RANGE, NS, LIMITS)
        if "quota" in policies:
            await client.create(RESOURCE_QUOTA, NS, QUOTA)
            await client.patch(RESOURCE_QUOTA, NS, "few", COUNTED, form=PatchForm.MERGE, subresource="status")

    async def batch(client: LoopbackClient) -> Outcomes:
        return await create_many(client, POD, namespace, template, names)

    async def single(client: LoopbackClient) -> Outcomes:
        return await one_by_one([client.create(POD, namespace, named(template, name)) for name in names])

    return history_of(prepare, batch, POD), history_of(prepare, single, POD)


@settings(max_examples=100, deadline=None)
@given(
    PODS,
    st.lists(NAMES, max_size=5),
    st.sampled_from([None, "", "web-", "Web-", "-", "x" * 70]),
    st.sampled_from([None, "template", "Template"]),
    st.sampled_from([(), ("limits",), ("quota",), ("limits", "quota")]),
)
def test_create_many_equals_create_in_a_loop(
    pod: Document, names: list[str], prefix: str | None, template_name: str | None, policies: Sequence[str]
) -> None:
    given_names = {"generateName": prefix, "name": template_name}
    metadata = {**pod["metadata"], **{field: value for field, value in given_names.items() if value is not None}}
    batch, single = histories_of_pods({**pod, "metadata": metadata}, names, policies)
    assert batch == single


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=[f"{path} {value}"[:60] for path, value in CHANGES])
def test_create_many_equals_create_for_each_value_of_a_field(path: str, value: Any) -> None:
    template = changed({**VALID, "metadata": {**VALID["metadata"], "generateName": "web-"}}, path, value)
    batch, single = histories_of_pods(template, ["a", "", "Invalid", "a", ""])
    assert batch == single


@pytest.mark.parametrize(
    ("template", "names"),
    [
        pytest.param({**VALID, "metadata": {}}, ["", ""], id="no name at all"),
        pytest.param({"spec": VALID["spec"]}, ["a", "b"], id="no metadata"),
        pytest.param({**VALID, "metadata": None}, ["a", "b"], id="null metadata"),
        pytest.param({**VALID, "metadata": "text"}, ["a", "b"], id="metadata that is no map"),
        pytest.param({**VALID, "metadata": {"name": 7}}, ["a", ""], id="a name that is no text"),
        pytest.param({**VALID, "metadata": {"annotations": {"big": "x" * 40_000}}}, ["a", "a", "b"], id="a large pod"),
        pytest.param({**VALID, "metadata": {"annotations": {"big": "x" * 300_000}}}, ["a", "b"], id="too large a pod"),
        pytest.param({}, ["a", "b"], id="an empty template"),
    ],
)
def test_create_many_equals_create_for_odd_templates(template: Document, names: Sequence[str]) -> None:
    batch, single = histories_of_pods(template, names)
    assert batch == single


def test_create_many_in_a_missing_namespace_rejects_each_pod() -> None:
    batch, single = histories_of_pods(VALID, ["a", "b"], namespace="missing")
    assert batch == single
    assert len(batch) == 2


def test_every_pod_of_a_batch_has_a_name_and_a_uid_of_its_own() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        template = {**VALID, "metadata": {"generateName": "web-"}}
        created = await create_many(client, POD, NS, template, [""] * 100)
        for field in ("name", "uid", "resourceVersion"):
            assert len({at(each, f"metadata.{field}") for each in created if isinstance(each, bytes)}) == 100

    with_api_server(scenario)


def test_other_kinds_are_created_one_by_one() -> None:
    """The defaults of a Namespace, for example, contain its name."""

    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        created = await create_many(
            client, NAMESPACE, "", {"metadata": {"labels": {"a": "b"}}}, ["one", "Two", "three"]
        )
        assert [isinstance(each, bytes) for each in created] == [True, False, True]
        labels = at(await client.get(NAMESPACE, "", "three"), "metadata.labels")
        assert labels == {"a": "b", "kubernetes.io/metadata.name": "three"}

    with_api_server(scenario)


class StoreThatRejects(MemoryStore):
    """A store that does not accept one object."""

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        if key.endswith("/rejected"):
            raise StoreClosed("the store is closed")
        return await super().put(key, value, if_revision=if_revision)


def test_an_error_of_the_store_is_the_outcome_of_its_object() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        storage = ObjectStorage(StoreThatRejects(), api_server.context.worker)
        api_server.context = replace(api_server.context, object_storage=storage)
        for kind, template in ((POD, VALID), (CONFIG_MAP, config_map())):
            rejected, created = await create_many(client, kind, NS, template, ["rejected", "created"])
            assert isinstance(rejected, ServerError)
            assert rejected.code == 503
            assert isinstance(created, bytes)

    with_api_server(scenario)


# --- patch_status_many ------------------------------------------------------------------------------------------------


RUNNING: Document = {"phase": "Running", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}]}
STATUSES: Sequence[object] = (
    RUNNING,
    {"phase": "Wandering"},
    {"phase": 7},
    {"podIP": "nowhere", "podIPs": [{"ip": "nowhere"}]},
    {"conditions": [{"type": "Ready", "status": "True"}]},
    {"conditions": [{"type": "Ready", "status": "Perhaps"}]},
    {"conditions": [{"status": "True"}]},
    {"conditions": [{"$patch": "replace"}]},
    {"startTime": "yesterday"},
    {"containerStatuses": [{"name": "main", "restartCount": -1, "state": {"running": {}}}]},
    {"unknown": 1},
    {"phase": None},
    {},
    None,
    "text",
)
UIDS = ("", "its own", "another")
POD_NAMES = ("a", "b", "missing", "Invalid Name", "")


def histories_of_statuses(
    statuses: Sequence[tuple[str, str, str, object]],
) -> tuple[list[object], list[object]]:
    """`statuses`: the namespace, name, uid and status of each patch."""
    uids: dict[str, str] = {}

    async def prepare(client: LoopbackClient) -> None:
        for name in ("a", "b"):
            uids[name] = text_at(await client.create(POD, NS, pod(name)), "metadata.uid")

    def patches() -> list[StatusPatch]:
        return [
            StatusPatch(namespace, name, uids.get(name, "") if uid == "its own" else uid, status)  # type: ignore[arg-type]
            for namespace, name, uid, status in statuses
        ]

    async def batch(client: LoopbackClient) -> Outcomes:
        written: dict[int, bytes] = {}
        outcomes = await patch_status_many(client, POD, patches(), written.__setitem__)
        assert written == {index: outcome for index, outcome in enumerate(outcomes) if isinstance(outcome, bytes)}
        return outcomes

    async def single(client: LoopbackClient) -> Outcomes:
        return await one_by_one(
            [
                client.patch(
                    POD, patch.namespace, patch.name, patch.body, form=PatchForm.STRATEGIC, subresource="status"
                )
                for patch in patches()
            ]
        )

    return history_of(prepare, batch, POD), history_of(prepare, single, POD)


@pytest.mark.parametrize("status", STATUSES, ids=str)
def test_patch_status_many_equals_patch_for_each_status(status: object) -> None:
    batch, single = histories_of_statuses([(NS, "a", "its own", status), (NS, "b", "its own", RUNNING)])
    assert batch == single


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from((NS, "missing", "")),
            st.sampled_from(POD_NAMES),
            st.sampled_from(UIDS),
            st.sampled_from(STATUSES),
        ),
        max_size=5,
    )
)
def test_patch_status_many_equals_patch_in_a_loop(statuses: list[tuple[str, str, str, object]]) -> None:
    batch, single = histories_of_statuses(statuses)
    assert batch == single


def test_statuses_of_nodes_are_patched_too() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        for name in ("n1", "n2"):
            await client.create(NODE, "", node(name))
        patches = [StatusPatch("", name, "", {"conditions": [condition]}) for name in ("n1", "n2")]
        outcomes = await patch_status_many(client, NODE, patches, lambda index, answer: None)
        for name, outcome in zip(("n1", "n2"), outcomes):
            assert isinstance(outcome, bytes)
            assert outcome == await client.get(NODE, "", name)
            [stored] = read(outcome)["status"]["conditions"]  # type: ignore[index]
            assert stored["reason"] == "KubeletReady"

    with_api_server(scenario)


# --- renew_leases -----------------------------------------------------------------------------------------------------


def lease(name: str, spec: Document | None) -> Document:
    return {"metadata": {"name": name}, **({"spec": spec} if spec is not None else {})}


OLD = "2025-01-01T00:00:00.000000Z"
LEASE_SPECS: dict[str, Document | None] = {
    "renewed": {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": OLD, "leaseTransitions": 3},
    "never-renewed": {"holderIdentity": "n1", "leaseDurationSeconds": 40, "leaseTransitions": 3},
    "null-time": {"holderIdentity": "n1", "renewTime": None, "acquireTime": OLD},
    "empty": {},
    "no-spec": None,
}
LEASE_NAMES = (*LEASE_SPECS, "missing", "Invalid Name", "")


def histories_of_leases(
    names: Sequence[str], renew_time_s: float, namespace: str = LEASES, labelled: Sequence[str] = ()
) -> tuple[list[object], list[object]]:
    """`labelled`: leases with another manager."""

    async def prepare(client: LoopbackClient) -> None:
        for name, spec in LEASE_SPECS.items():
            await client.create(LEASE, LEASES, lease(name, spec))
        for name in labelled:
            await client.patch(LEASE, LEASES, name, {"metadata": {"labels": {"x": "y"}}}, form=PatchForm.MERGE)

    async def batch(client: LoopbackClient) -> Outcomes:
        return await renew_leases(client, namespace, names, renew_time_s)

    async def single(client: LoopbackClient) -> Outcomes:
        patch = {"spec": {"renewTime": format_rfc3339_micro(renew_time_s)}}
        return await one_by_one([client.patch(LEASE, namespace, name, patch, form=PatchForm.MERGE) for name in names])

    def documents(history: Sequence[object]) -> list[object]:
        """Without the order of fields: a patch decodes the whole lease, and puts them in the order of the schema."""
        return [read(each) if isinstance(each, bytes) else each for each in history]

    return documents(history_of(prepare, batch, LEASE)), documents(history_of(prepare, single, LEASE))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(LEASE_NAMES), max_size=6),
    st.floats(-1e9, 4e9) | st.just(VIRTUAL_WALL_S),
    st.sampled_from((LEASES, LEASES, "missing", "")),
    st.lists(st.sampled_from(tuple(LEASE_SPECS)), max_size=2),
)
def test_renew_leases_equals_patch_in_a_loop(
    names: list[str], renew_time_s: float, namespace: str, labelled: list[str]
) -> None:
    batch, single = histories_of_leases(names, renew_time_s, namespace, labelled)
    assert batch == single


@pytest.mark.parametrize("name", LEASE_NAMES)
def test_renew_leases_equals_patch_for_each_lease(name: str) -> None:
    batch, single = histories_of_leases([name, "renewed"], VIRTUAL_WALL_S)
    assert batch == single


def test_a_missing_lease_does_not_stop_the_others() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        await client.create(LEASE, LEASES, lease("a", {"renewTime": OLD}))
        missing, renewed = await renew_leases(client, LEASES, ["missing", "a"], VIRTUAL_WALL_S)
        assert isinstance(missing, NotFoundError)
        assert isinstance(renewed, bytes)
        assert at(renewed, "spec.renewTime") == "2026-01-01T00:00:00.000000Z"

    with_api_server(scenario)
