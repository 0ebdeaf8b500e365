"""The contract of clients: updating and patching.

The contract of clients: deleting objects and binding pods.
"""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP, POD, REPLICA_SET
from mooring.client.errors import BadRequestError, ConflictError, InvalidError, NotFoundError, StatusError
from mooring.client.interface import Client, Deletion, PatchForm
from tests.client.contract_play import NS, Play, PlayedContract
from tests.client.objects import Body, at, config_map, pod, read, replica_set, text_at

MODIFIED = (
    'Operation cannot be fulfilled on configmaps "settings": '
    "the object has been modified; please apply your changes to the latest version and try again"
)


class ChangingContract(PlayedContract):
    def test_create_without_an_answer_stores_the_object(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            body = config_map(data={"a": "1"})
            assert await client.create(CONFIG_MAP, NS, body, is_answer_wanted=False) == b""
            assert at(await client.get(CONFIG_MAP, NS, "settings"), "data") == {"a": "1"}

        play(scenario)

    def test_an_update_replaces_the_object_and_keeps_system_fields(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            before = await client.create(CONFIG_MAP, NS, config_map(data={"a": "1"}, labels={"x": "y"}))
            after = await client.update(CONFIG_MAP, NS, "settings", config_map(data={"b": "2"}))
            assert (at(after, "data"), at(after, "metadata.labels")) == ({"b": "2"}, None)
            for field in ("metadata.uid", "metadata.creationTimestamp", "metadata.name", "metadata.namespace"):
                assert at(after, field) == at(before, field)
            assert int(text_at(after, "metadata.resourceVersion")) > int(text_at(before, "metadata.resourceVersion"))
            assert await client.get(CONFIG_MAP, NS, "settings") == after

        play(scenario)

    def test_an_update_with_an_old_resource_version_is_a_conflict(self, play: Play) -> None:
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
    def test_an_update_with_another_uid_or_name_is_rejected(
        self, play: Play, body: Body, error: type[StatusError], words: str
    ) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map())
            with pytest.raises(error) as refusal:
                await client.update(CONFIG_MAP, NS, "settings", body)
            assert words in str(refusal.value)

        play(scenario)

    def test_changes_of_a_missing_object_are_not_found(self, play: Play) -> None:
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

    def test_a_write_without_changes_keeps_the_resource_version(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            before = await client.create(CONFIG_MAP, NS, config_map(data={"a": "1"}))
            assert read(await client.update(CONFIG_MAP, NS, "settings", read(before))) == read(before)
            patch = {"data": {"a": "1"}}
            assert read(await client.patch(CONFIG_MAP, NS, "settings", patch, form=PatchForm.MERGE)) == read(before)
            assert read(await client.get(CONFIG_MAP, NS, "settings")) == read(before)

        play(scenario)

    def test_generation_counts_changes_of_the_spec_and_status_is_written_by_its_subresource(self, play: Play) -> None:
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
    def test_patches_of_each_type(self, play: Play, patch: object, form: PatchForm, data: Body) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map(data={"a": "1", "b": "1"}))
            after = await client.patch(CONFIG_MAP, NS, "settings", patch, form=form)
            assert at(after, "data") == data
            assert await client.get(CONFIG_MAP, NS, "settings") == after

        play(scenario)

    def test_a_patch_of_the_status_changes_only_the_status(self, play: Play) -> None:
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
    def test_a_patch_with_another_resource_version_or_uid_is_rejected(
        self, play: Play, patch: Body, error: type[StatusError], words: str
    ) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map())
            with pytest.raises(error) as refusal:
                await client.patch(CONFIG_MAP, NS, "settings", patch, form=PatchForm.MERGE)
            assert str(refusal.value) == words

        play(scenario)


class DeletingContract(PlayedContract):
    def test_a_deleted_object_is_not_found(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map())
            await client.delete(CONFIG_MAP, NS, "settings")
            with pytest.raises(NotFoundError):
                await client.get(CONFIG_MAP, NS, "settings")

        play(scenario)

    @pytest.mark.parametrize(
        ("deletion", "words"),
        [
            pytest.param(
                Deletion(uid="another"),
                'Operation cannot be fulfilled on ConfigMap "settings": the UID in the precondition (another)',
                id="another object of that name",
            ),
            pytest.param(
                Deletion(revision="1"),
                'Operation cannot be fulfilled on ConfigMap "settings": the ResourceVersion in the precondition (1)',
                id="another state of it",
            ),
        ],
    )
    def test_a_deletion_with_a_failed_precondition_is_a_conflict(
        self, play: Play, deletion: Deletion, words: str
    ) -> None:
        async def scenario(client: Client) -> None:
            raw = await client.create(CONFIG_MAP, NS, config_map())
            with pytest.raises(ConflictError) as refusal:
                await client.delete(CONFIG_MAP, NS, "settings", deletion)
            assert str(refusal.value).startswith(words)
            uid, revision = text_at(raw, "metadata.uid"), text_at(raw, "metadata.resourceVersion")
            await client.delete(CONFIG_MAP, NS, "settings", Deletion(uid=uid, revision=revision))

        play(scenario)

    def test_an_object_with_finalizers_is_removed_with_the_last_of_them(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map(finalizers=["example.com/a", "example.com/b"]))
            await client.delete(CONFIG_MAP, NS, "settings")
            ending = await client.get(CONFIG_MAP, NS, "settings")
            assert at(ending, "metadata.deletionTimestamp")
            patch: Body = {"metadata": {"finalizers": ["example.com/b"]}}
            await client.patch(CONFIG_MAP, NS, "settings", patch, form=PatchForm.MERGE)
            await client.delete(CONFIG_MAP, NS, "settings")
            body = read(await client.get(CONFIG_MAP, NS, "settings"))
            assert at(body, "metadata.finalizers") == ["example.com/b"]
            await client.update(CONFIG_MAP, NS, "settings", config_map())
            with pytest.raises(NotFoundError):
                await client.get(CONFIG_MAP, NS, "settings")

        play(scenario)

    def test_a_bound_pod_is_deleted_with_a_grace_period(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await client.create(POD, NS, pod("web", on="n1", grace_s=30))
            await client.delete(POD, NS, "web")
            ending = await client.get(POD, NS, "web")
            assert at(ending, "metadata.deletionGracePeriodSeconds") == 30
            assert at(ending, "metadata.generation") == 2
            await client.delete(POD, NS, "web", Deletion(grace_s=60))
            assert await client.get(POD, NS, "web") == ending
            await client.delete(POD, NS, "web", Deletion(grace_s=5))
            shortened = await client.get(POD, NS, "web")
            assert at(shortened, "metadata.deletionGracePeriodSeconds") == 5
            assert text_at(shortened, "metadata.deletionTimestamp") < text_at(ending, "metadata.deletionTimestamp")
            await client.delete(POD, NS, "web", Deletion(grace_s=0))
            with pytest.raises(NotFoundError):
                await client.get(POD, NS, "web")

        play(scenario)

    @pytest.mark.parametrize(
        ("body", "deletion"),
        [
            pytest.param(pod("web"), Deletion(), id="it has no node"),
            pytest.param(pod("web", on="n1"), Deletion(grace_s=0), id="somebody wants it gone at once"),
            pytest.param(pod("web", on="n1", grace_s=0), Deletion(), id="it needs no time"),
        ],
    )
    def test_a_pod_without_a_grace_period_is_deleted_immediately(
        self, play: Play, body: Body, deletion: Deletion
    ) -> None:
        async def scenario(client: Client) -> None:
            await client.create(POD, NS, body)
            await client.delete(POD, NS, "web", deletion)
            with pytest.raises(NotFoundError):
                await client.get(POD, NS, "web")

        play(scenario)

    def test_a_finished_pod_is_deleted_immediately(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await client.create(POD, NS, pod("web", on="n1"))
            patch: Body = {"status": {"phase": "Succeeded"}}
            await client.patch(POD, NS, "web", patch, form=PatchForm.MERGE, subresource="status")
            await client.delete(POD, NS, "web")
            with pytest.raises(NotFoundError):
                await client.get(POD, NS, "web")

        play(scenario)

    def test_bind_sets_the_node_name_and_the_condition_pod_scheduled(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            raw = await client.create(POD, NS, pod("web"))
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
            patch: Body = {"status": {"nominatedNodeName": "n2", "conditions": [condition]}}
            await client.patch(POD, NS, "web", patch, form=PatchForm.MERGE, subresource="status")
            await client.bind(NS, "web", text_at(raw, "metadata.uid"), "n1")
            after = await client.get(POD, NS, "web")
            assert at(after, "spec.nodeName") == "n1"
            assert at(after, "status.nominatedNodeName") is None
            conditions = at(after, "status.conditions")
            assert isinstance(conditions, list)
            scheduled = [each for each in conditions if each["type"] == "PodScheduled"]
            assert [(each["status"], each.get("reason")) for each in scheduled] == [("True", None)]
            assert scheduled[0]["lastTransitionTime"]
            assert at(after, "metadata.generation") == 1

        play(scenario)

    @pytest.mark.parametrize(
        ("body", "uid", "words"),
        [
            pytest.param(
                pod("web", on="n2"),
                "",
                'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n2"',
                id="it has a node",
            ),
            pytest.param(
                pod("web", gates=["example.com/wait"]),
                "",
                'Operation cannot be fulfilled on pods/binding "web": pod web has non-empty .spec.schedulingGates',
                id="it is gated",
            ),
            pytest.param(
                pod("web"),
                "another",
                'Operation cannot be fulfilled on pods "web": StorageError: invalid object, Code: 4, '
                "Key: /registry/pods/default/web, ResourceVersion: 0, AdditionalErrorMsg: "
                "Precondition failed: UID in precondition: another, UID in object meta: ",
                id="it is another pod of that name",
            ),
        ],
    )
    def test_a_bind_with_a_failed_precondition_is_a_conflict(
        self, play: Play, body: Body, uid: str, words: str
    ) -> None:
        async def scenario(client: Client) -> None:
            before = await client.create(POD, NS, body)
            with pytest.raises(ConflictError) as refusal:
                await client.bind(NS, "web", uid, "n1")
            assert str(refusal.value).startswith(words)
            assert await client.get(POD, NS, "web") == before

        play(scenario)

    def test_a_terminating_pod_cannot_be_bound(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await client.create(POD, NS, pod("web", finalizers=["example.com/wait"]))
            await client.delete(POD, NS, "web")
            with pytest.raises(ConflictError) as refusal:
                await client.bind(NS, "web", "", "n1")
            wanted = "pod web is being deleted, cannot be assigned to a host"
            assert str(refusal.value) == f'Operation cannot be fulfilled on pods/binding "web": {wanted}'

        play(scenario)

    def test_only_the_first_of_two_binds_succeeds(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            raw = await client.create(POD, NS, pod("web"))
            await client.bind(NS, "web", text_at(raw, "metadata.uid"), "n1")
            with pytest.raises(ConflictError):
                await client.bind(NS, "web", text_at(raw, "metadata.uid"), "n2")
            assert at(await client.get(POD, NS, "web"), "spec.nodeName") == "n1"

        play(scenario)
