"""A lease that is renewed as before is stored as the registry would store it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mooring.api.kinds import LEASE, NAMESPACE
from mooring.apiserver.access.users import User
from mooring.apiserver.desk import Desk
from mooring.apiserver.inside import InsideClient
from mooring.apiserver.twin_writes import TwinWrites
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import PatchForm
from mooring.client.local import LocalClient
from mooring.kit.entropy import Entropy
from tests.apiserver.desks import with_desk
from tests.client.objects import Body

NS = "leases"
Interlude = Callable[[Desk, InsideClient, str], Awaitable[None]]


def lease(name: str) -> Body:
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


async def renew(client: InsideClient, name: str, number: int) -> None:
    patch: Body = {"spec": {"renewTime": f"2026-01-01T00:{number:02}:00.123456Z"}}
    await client.patch(LEASE, NS, name, patch, form=PatchForm.MERGE)


async def renew_often(desk: Desk, client: InsideClient, times: int) -> None:
    """A new lease `a`, until it is well known."""
    await client.create(NAMESPACE, "", {"metadata": {"name": NS}})
    await client.create(LEASE, NS, lease("a"))
    for number in range(1, times + 1):
        await desk.clock.wait(10.0)
        await renew(client, "a", number)


def another(desk: Desk, manager: str = "tester") -> InsideClient:
    """One who remembers nothing."""
    return InsideClient(desk, LocalClient(desk.store, desk.clock, Entropy(3)), User("tester"), manager)


async def nothing(desk: Desk, client: InsideClient, name: str) -> None:
    pass


async def a_label(desk: Desk, client: InsideClient, name: str) -> None:
    labelled: Body = {"metadata": {"labels": {"seen": "true"}}}
    await another(desk, "somebody-else").patch(LEASE, NS, name, labelled, form=PatchForm.MERGE)


async def its_own_label(desk: Desk, client: InsideClient, name: str) -> None:
    await client.patch(LEASE, NS, name, {"metadata": {"labels": {"seen": "true"}}}, form=PatchForm.MERGE)


async def the_time_elsewhere(desk: Desk, client: InsideClient, name: str) -> None:
    # Whoever holds it since the very moment of the next renewal: that time stands twice then.
    spec: Body = {"spec": {"acquireTime": "2026-01-01T00:04:00.123456Z"}}
    await client.patch(LEASE, NS, name, spec, form=PatchForm.MERGE)


async def another_namespace(desk: Desk, client: InsideClient, name: str) -> None:
    await client.patch(NAMESPACE, "", NS, {"metadata": {"labels": {name: "seen"}}}, form=PatchForm.MERGE)


@pytest.mark.parametrize("waits_s", [10.0, 0.0], ids=["later", "in the same second"])
@pytest.mark.parametrize("interlude", [nothing, a_label, its_own_label, the_time_elsewhere, another_namespace])
def test_it_is_stored_as_the_registry_would_store_it(interlude: Interlude, waits_s: float) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        await client.create(NAMESPACE, "", {"metadata": {"name": NS}})
        stored: dict[str, list[bytes]] = {}
        for name in ("a", "b"):
            await client.create(LEASE, NS, lease(name))
        for number in range(1, 9):
            await desk.clock.wait(waits_s)
            for name, writer in (("a", client), ("b", another(desk))):
                if number == 4:
                    await interlude(desk, writer, name)
                await renew(writer, name, number)
                stored.setdefault(name, []).append(await told(desk, name))
        assert stored["a"] == stored["b"]

    with_desk(scenario)


async def told(desk: Desk, name: str) -> bytes:
    """A lease as it is stored, without what differs between two of them."""
    record = await desk.store.get(LEASE.key(NS, name))
    assert record is not None
    before, _, after = record.value.partition(b'"creationTimestamp"')
    return before[: before.index(b'"name"')] + after


def test_nothing_is_worked_out_from_the_third_time_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    patch_as_ever = TwinWrites.patch

    async def patching(twins: TwinWrites, *arguments: object) -> object:
        asked.append("patch")
        return await patch_as_ever(twins, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(TwinWrites, "patch", patching)

    async def scenario(desk: Desk, client: InsideClient) -> None:
        await renew_often(desk, client, 19)

    with_desk(scenario)
    assert 1 <= len(asked) <= 4


@pytest.mark.parametrize("gone", [LEASE, NAMESPACE], ids=["the lease", "its namespace"])
def test_what_is_gone_is_not_renewed(gone: object) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        await renew_often(desk, client, 5)
        await desk.store.delete(LEASE.key(NS, "a") if gone is LEASE else NAMESPACE.key("", NS))
        await desk.clock.wait(10.0)
        with pytest.raises(NotFoundError):
            await renew(client, "a", 7)

    with_desk(scenario)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"spec": {"renewTime": "soon"}}, id="no time"),
        pytest.param({"spec": {"renewTime": 5}}, id="a number"),
        pytest.param({"spec": {"leaseDurationSeconds": -1}}, id="something else"),
    ],
)
def test_what_the_registry_refuses_is_refused(patch: Body) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        await renew_often(desk, client, 5)
        await desk.clock.wait(10.0)
        with pytest.raises(ClientError):
            await client.patch(LEASE, NS, "a", patch, form=PatchForm.MERGE)

    with_desk(scenario)
