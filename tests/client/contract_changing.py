"""The contract of clients: updating and patching."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP, POD, REPLICA_SET
from mooring.client.errors import BadRequestError, ConflictError, InvalidError, NotFoundError, StatusError
from mooring.client.interface import Client, PatchForm
from tests.client.contract_play import NS, Play, PlayedContract
from tests.client.objects import Body, at, config_map, pod, read, replica_set, text_at

MODIFIED = (
    'Operation cannot be fulfilled on configmaps "settings": '
    "the object has been modified; please apply your changes to the latest version and try again"
)


class ChangingContract(PlayedContract):
    def test_what_nobody_wants_to_read_is_created_all_the_same(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            body = config_map(data={"a": "1"})
            assert await client.create(CONFIG_MAP, NS, body, is_answer_wanted=False) == b""
            assert at(await client.get(CONFIG_MAP, NS, "settings"), "data") == {"a": "1"}

        play(scenario)

    def test_an_update_replaces_what_is_wanted_and_keeps_what_is_the_systems(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            before = await client.create(CONFIG_MAP, NS, config_map(data={"a": "1"}, labels={"x": "y"}))
            after = await client.update(CONFIG_MAP, NS, "settings", config_map(data={"b": "2"}))
            assert (at(after, "data"), at(after, "metadata.labels")) == ({"b": "2"}, None)
            for field in ("metadata.uid", "metadata.creationTimestamp", "metadata.name", "metadata.namespace"):
                assert at(after, field) == at(before, field)
            assert int(text_at(after, "metadata.resourceVersion")) > int(text_at(before, "metadata.resourceVersion"))
            assert await client.get(CONFIG_MAP, NS, "settings") == after

        play(scenario)

    def test_an_update_from_an_older_state_is_a_conflict(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            read_early = read(await client.create(CONFIG_MAP, NS, config_map()))
            await client.update(CONFIG_MAP, NS, "settings", {**read_early, "data": {"a": "first"}})
            with pytest.raises(ConflictError) as refusal:
                await client.update(CONFIG_MAP, NS, "settings", {**read_early, "data": {"a": "second"}})
            assert str(refusal.value) == MODIFIED
            assert at(await client.get(CONFIG_MAP, NS, "settings"), "data") == {"a": "first"}

        play(scenario)

    @pytest.mark.parametrize(
        ("body", "error", "words"),
        [
            pytest.param(
                config_map(uid="another"),
                ConflictError,
                "Precondition failed: UID in precondition: another, UID in object meta: ",
                id="of an object that was replaced by this one",
            ),
            pytest.param(
                config_map("other"),
                BadRequestError,
                "the name of the object (other) does not match the name on the URL (settings)",
                id="under another name",
            ),
        ],
    )
    def test_an_update_that_means_another_object_is_refused(
        self, play: Play, body: Body, error: type[StatusError], words: str
    ) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map())
            with pytest.raises(error) as refusal:
                await client.update(CONFIG_MAP, NS, "settings", body)
            assert words in str(refusal.value)

        play(scenario)

    def test_what_is_not_there_cannot_be_changed(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            for request in (
                client.update(POD, NS, "web", pod("web")),
                client.patch(POD, NS, "web", {}, form=PatchForm.MERGE),
                client.delete(POD, NS, "web"),
                client.bind(NS, "web", "", "n1"),
            ):
                with pytest.raises(NotFoundError) as refusal:
                    await request
                assert str(refusal.value) == 'pods "web" not found'

        play(scenario)

    def test_a_change_of_nothing_is_no_change(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            before = await client.create(CONFIG_MAP, NS, config_map(data={"a": "1"}))
            assert read(await client.update(CONFIG_MAP, NS, "settings", read(before))) == read(before)
            patch = {"data": {"a": "1"}}
            assert read(await client.patch(CONFIG_MAP, NS, "settings", patch, form=PatchForm.MERGE)) == read(before)
            assert read(await client.get(CONFIG_MAP, NS, "settings")) == read(before)

        play(scenario)

    def test_generation_counts_changes_of_the_spec_and_status_is_a_subresource(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            body = read(await client.create(REPLICA_SET, NS, replica_set(replicas=1)))
            body["status"] = {"replicas": 1}
            reported = await client.update(REPLICA_SET, NS, "web", body, subresource="status")
            assert (at(reported, "status.replicas"), at(reported, "metadata.generation")) == (1, 1)

            wanted = read(reported)
            wanted["status"] = {"replicas": 99}
            wanted["spec"] = replica_set(replicas=5)["spec"]
            scaled = await client.update(REPLICA_SET, NS, "web", wanted)
            assert (at(scaled, "status.replicas"), at(scaled, "spec.replicas")) == (1, 5)
            assert at(scaled, "metadata.generation") == 2

            wrong_call = read(scaled)
            wrong_call["spec"] = replica_set(replicas=7)["spec"]
            wrong_call["status"] = {"replicas": 5}
            reported = await client.update(REPLICA_SET, NS, "web", wrong_call, subresource="status")
            assert (at(reported, "status.replicas"), at(reported, "spec.replicas")) == (5, 5)
            assert at(reported, "metadata.generation") == 2

        play(scenario)

    @pytest.mark.parametrize(
        ("patch", "form", "data"),
        [
            pytest.param(
                [{"op": "replace", "path": "/data/a", "value": "2"}, {"op": "add", "path": "/data/c", "value": "3"}],
                PatchForm.JSON,
                {"a": "2", "b": "1", "c": "3"},
                id="steps",
            ),
            pytest.param({"data": {"a": None, "c": "3"}}, PatchForm.MERGE, {"b": "1", "c": "3"}, id="merge"),
            pytest.param({"data": {"a": "2"}}, PatchForm.STRATEGIC, {"a": "2", "b": "1"}, id="strategic merge"),
        ],
    )
    def test_patches_in_each_form(self, play: Play, patch: object, form: PatchForm, data: Body) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map(data={"a": "1", "b": "1"}))
            after = await client.patch(CONFIG_MAP, NS, "settings", patch, form=form)
            assert at(after, "data") == data
            assert await client.get(CONFIG_MAP, NS, "settings") == after

        play(scenario)

    def test_a_patch_of_the_status_changes_nothing_else(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await client.create(POD, NS, pod("web"))
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
            patch = {"status": {"conditions": [condition]}, "spec": {"nodeName": "n1"}}
            after = await client.patch(POD, NS, "web", patch, form=PatchForm.STRATEGIC, subresource="status")
            assert at(after, "spec.nodeName") is None
            conditions = at(after, "status.conditions")
            assert isinstance(conditions, list)
            assert [(each["type"], each["reason"]) for each in conditions] == [("PodScheduled", "Unschedulable")]

        play(scenario)

    @pytest.mark.parametrize(
        ("patch", "error", "words"),
        [
            pytest.param(
                {"metadata": {"resourceVersion": "1"}, "data": {}}, ConflictError, MODIFIED, id="of another state"
            ),
            pytest.param(
                {"metadata": {"uid": "another"}},
                InvalidError,
                'ConfigMap "settings" is invalid: metadata.uid: Invalid value: "another": field is immutable',
                id="of another object",
            ),
        ],
    )
    def test_a_patch_may_say_what_it_is_meant_for(
        self, play: Play, patch: Body, error: type[StatusError], words: str
    ) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map())
            with pytest.raises(error) as refusal:
                await client.patch(CONFIG_MAP, NS, "settings", patch, form=PatchForm.MERGE)
            assert str(refusal.value) == words

        play(scenario)
