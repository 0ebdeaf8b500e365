"""The contract of clients: batch writes."""

from __future__ import annotations

import pytest

from mooring.api.kinds import LEASE, POD
from mooring.client.batch_writes import StatusPatch, create_many, patch_status_many, renew_leases
from mooring.client.errors import AlreadyExistsError, BadRequestError, InvalidError, NotFoundError
from mooring.client.interface import Client
from tests.client.contract_play import NS, Play, PlayedContract, names
from tests.client.objects import Body, at, pod, text_at

RENEW_TIME_S = 1_767_225_600.25
READY = {"type": "Ready", "status": "True"}


def lease(name: str) -> Body:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2025-01-01T00:00:00.000000Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


class BatchContract(PlayedContract):
    def test_each_object_of_a_batch_is_created_or_rejected_by_itself(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            outcomes = await create_many(client, POD, NS, pod("", labels={"a": "b"}), ["one", "Two", "three"])
            one, two, three = outcomes
            assert isinstance(two, InvalidError)
            assert str(two).startswith('Pod "Two" is invalid: metadata.name: Invalid value: "Two": ')
            assert isinstance(one, bytes)
            assert isinstance(three, bytes)
            assert names([one, three]) == ["one", "three"]
            assert at(three, "metadata.labels") == {"a": "b"}
            assert await client.get(POD, NS, "three") == three

        play(scenario)

    def test_an_object_that_exists_is_not_created_again(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await client.create(POD, NS, pod("one"))
            one, two = await create_many(client, POD, NS, pod(""), ["one", "two"])
            assert isinstance(one, AlreadyExistsError)
            assert str(one) == 'pods "one" already exists'
            assert isinstance(two, bytes)

        play(scenario)

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_names_are_generated(self, play: Play, count: int) -> None:
        async def scenario(client: Client) -> None:
            created = await create_many(client, POD, NS, pod("", generateName="web-"), [""] * count)
            found = names([each for each in created if isinstance(each, bytes)])
            assert len(set(found)) == count
            assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in found)

        play(scenario)

    def test_a_template_that_cannot_be_read_is_rejected_for_each_object(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            template = {**pod(""), "spec": {"containers": "many"}}
            outcomes = await create_many(client, POD, NS, template, ["one", "two"])
            assert [type(outcome) for outcome in outcomes] == [BadRequestError, BadRequestError]

        play(scenario)

    def test_each_status_of_a_batch_is_patched_or_rejected_by_itself(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            uid = text_at(await client.create(POD, NS, pod("one")), "metadata.uid")
            await client.create(POD, NS, pod("two"))
            patches = [
                StatusPatch(NS, "two", "another", {"phase": "Running"}),
                StatusPatch(NS, "one", uid, {"phase": "Running", "conditions": [READY]}),
                StatusPatch(NS, "missing", "", {"phase": "Running"}),
                StatusPatch(NS, "two", "", {"phase": "Failed"}),
            ]
            written: dict[int, bytes] = {}
            replaced, one, missing, two = await patch_status_many(client, POD, patches, written.__setitem__)
            assert isinstance(replaced, InvalidError)
            assert isinstance(missing, NotFoundError)
            assert isinstance(one, bytes)
            assert isinstance(two, bytes)
            assert written == {1: one, 3: two}
            assert (at(one, "status.phase"), at(two, "status.phase")) == ("Running", "Failed")
            assert await client.get(POD, NS, "one") == one

        play(scenario)

    def test_each_lease_of_a_batch_is_renewed_or_missing_by_itself(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            for name in ("n1", "n2"):
                await client.create(LEASE, NS, lease(name))
            outcomes = await renew_leases(client, NS, ["n1", "missing", "n2"], RENEW_TIME_S)
            assert isinstance(outcomes[1], NotFoundError)
            assert str(outcomes[1]) == 'leases.coordination.k8s.io "missing" not found'
            for name, outcome in (("n1", outcomes[0]), ("n2", outcomes[2])):
                assert outcome == await client.get(LEASE, NS, name)
                assert isinstance(outcome, bytes)
                assert at(outcome, "spec.renewTime") == "2026-01-01T00:00:00.250000Z"
                assert at(outcome, "spec.holderIdentity") == name

        play(scenario)
