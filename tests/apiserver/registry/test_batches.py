"""Batch writes come to the same as single writes, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.document import Document
from mooring.api.kinds import LEASE, LIMIT_RANGE, POD, RESOURCE_QUOTA
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.errors import NotFoundError, StatusError
from mooring.client.interface import PatchForm
from mooring.kit.clock import format_rfc3339_micro
from tests.apiserver.pod_strategies import NAMES, PODS, VALID
from tests.apiserver.servers import with_api_server
from tests.client.objects import read

NS, LEASES = "default", "kube-node-lease"
QUOTA: Document = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}}
COUNTED: Document = {"status": {"hard": {"pods": "2"}, "used": {"pods": "0"}}}
LIMITS: Document = {
    "metadata": {"name": "limits"},
    "spec": {"limits": [{"type": "Container", "default": {"cpu": "100m"}, "max": {"cpu": "1"}}]},
}


def comparable(outcome: bytes | Exception) -> object:
    """An outcome without what differs from run to run: the uid, the revision and a generated name."""
    if isinstance(outcome, StatusError):
        return type(outcome), outcome.code, outcome.message, outcome.details
    assert isinstance(outcome, bytes), outcome
    pod: Any = read(outcome)
    metadata = pod["metadata"]
    assert metadata.pop("uid")
    assert metadata.pop("resourceVersion")
    if metadata.get("generateName"):
        metadata["name"] = metadata["name"][:-5] + "?????"
    return msgspec.json.encode(pod)


async def one_by_one(client: LoopbackClient, template: Document, names: Sequence[str]) -> list[bytes | Exception]:
    found: list[bytes | Exception] = []
    for name in names:
        metadata = {**template["metadata"], "name": name} if name else template["metadata"]
        try:
            found.append(await client.create(POD, NS, {**template, "metadata": metadata}))
        except StatusError as error:
            found.append(error)
    return found


def outcomes(template: Document, names: Sequence[str], policies: Sequence[str], *, is_batch: bool) -> list[object]:
    found: list[object] = []

    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        if "limits" in policies:
            await client.create(LIMIT_RANGE, NS, LIMITS)
        if "quota" in policies:
            await client.create(RESOURCE_QUOTA, NS, QUOTA)
            await client.patch(RESOURCE_QUOTA, NS, "few", COUNTED, form=PatchForm.MERGE, subresource="status")
        create = client.create_many(POD, NS, template, names) if is_batch else one_by_one(client, template, names)
        made = await create
        found.extend(comparable(each) for each in made)
        for each in made:
            if isinstance(each, bytes):
                name: Any = read(each)["metadata"]
                assert await client.get(POD, NS, name["name"]) == each
        found.append(len((await client.list(POD)).items))

    with_api_server(scenario)
    return found


@settings(max_examples=50, deadline=None)
@given(
    PODS,
    st.lists(NAMES, min_size=1, max_size=4),
    st.sampled_from([None, "web-", "Web-", "x" * 70]),
    st.sampled_from([(), ("limits",), ("quota",), ("limits", "quota")]),
)
def test_create_many_equals_create_in_a_loop(
    pod: Document, names: list[str], prefix: str | None, policies: Sequence[str]
) -> None:
    template = {**pod, "metadata": {**pod["metadata"], **({"generateName": prefix} if prefix is not None else {})}}
    assert outcomes(template, names, policies, is_batch=True) == outcomes(template, names, policies, is_batch=False)


@pytest.mark.parametrize("count", [1, 100])
def test_every_pod_gets_a_name_and_a_uid_of_its_own(count: int) -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        template = {**VALID, "metadata": {"generateName": "web-"}}
        made: Any = [read(each) for each in await client.create_many(POD, NS, template, [""] * count) if each]  # type: ignore[arg-type]
        for field in ("name", "uid", "resourceVersion"):
            assert len({pod["metadata"][field] for pod in made}) == count

    with_api_server(scenario)


def lease(name: str) -> Document:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return {"metadata": {"name": name}, "spec": spec}


@settings(max_examples=15, deadline=None)
@given(st.floats(0, 4e9), st.booleans())
def test_renewing_leases_equals_patching_them(renew_time_s: float, is_managed_by_another: bool) -> None:
    found: dict[bool, list[object]] = {}
    for is_batch in (True, False):

        async def scenario(api_server: ApiServer, client: LoopbackClient, is_batch: bool = is_batch) -> None:
            for name in ("a", "b"):
                await client.create(LEASE, LEASES, lease(name))
            if is_managed_by_another:
                labels = {"metadata": {"labels": {"x": "y"}}}
                await client.patch(LEASE, LEASES, "a", labels, form=PatchForm.MERGE)
            await api_server.clock.wait(10.0)
            patch = {"spec": {"renewTime": format_rfc3339_micro(renew_time_s)}}
            if is_batch:
                assert await client.renew_leases(LEASES, ["a", "b"], renew_time_s) == [None, None]
            else:
                for name in ("a", "b"):
                    await client.patch(LEASE, LEASES, name, patch, form=PatchForm.MERGE)
            stored: list[Any] = [read(await client.get(LEASE, LEASES, name)) for name in ("a", "b")]
            for each in stored:
                del each["metadata"]["uid"]
            found[is_batch] = [msgspec.json.encode(each) for each in stored]

        with_api_server(scenario)
    assert found[True] == found[False]


def test_a_missing_lease_does_not_stop_the_others() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        await client.create(LEASE, LEASES, lease("a"))
        missing, renewed = await client.renew_leases(LEASES, ["missing", "a"], 1_800_000_000.0)
        assert isinstance(missing, NotFoundError)
        assert renewed is None

    with_api_server(scenario)
