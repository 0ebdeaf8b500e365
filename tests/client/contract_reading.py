"""The contract of clients: creating, getting and listing.

The contract of clients: watching.
"""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP, NODE, POD, REPLICA_SET
from mooring.api.views.pod import Pod
from mooring.client.errors import AlreadyExistsError, BadRequestError, InvalidError, NotFoundError, StatusError
from mooring.client.interface import Change, Client, Deletion, PatchForm, Selection, WatchEvent
from mooring.kit.tasks import TaskGroup
from tests.client.contract_play import NS, Play, PlayedContract, create_all, events_of, names, told
from tests.client.objects import Body, at, config_map, node, pod, text_at


class ReadingContract(PlayedContract):
    def test_a_created_object_gets_system_fields(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            raw = await client.create(POD, NS, pod("web", labels={"app": "web"}))
            metadata = at(raw, "metadata")
            assert isinstance(metadata, dict)
            assert (metadata["name"], metadata["namespace"], metadata["labels"]) == ("web", NS, {"app": "web"})
            assert metadata["generation"] == 1
            for field in ("uid", "resourceVersion", "creationTimestamp"):
                assert metadata[field]
            assert await client.get(POD, NS, "web") == raw

        play(scenario)

    def test_create_ignores_uid_and_creation_timestamp(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            body = config_map(uid="mine", creationTimestamp="2001-01-01T00:00:00Z")
            raw = await client.create(CONFIG_MAP, NS, body)
            assert text_at(raw, "metadata.uid") != "mine"
            assert text_at(raw, "metadata.creationTimestamp") > "2020"

        play(scenario)

    def test_generate_name_creates_unique_names(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            made = [await client.create(POD, NS, pod("", generateName="web-")) for _ in range(3)]
            found = names(made)
            assert len(set(found)) == 3
            assert all(name.startswith("web-") and len(name) == 9 for name in found)

        play(scenario)

    def test_a_cluster_scoped_object_has_no_namespace(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            raw = await client.create(NODE, "", node("n1"))
            assert at(raw, "metadata.namespace") is None
            assert await client.get(NODE, "", "n1") == raw

        play(scenario)

    def test_values_that_look_like_json_are_stored_unchanged(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            body = config_map(
                data={"a": "ü", "b": 'say "metadata":{} twice'}, annotations={"x/y": '"metadata":{"z":1}'}
            )
            raw = await client.create(CONFIG_MAP, NS, body)
            assert at(raw, "data") == body["data"]
            assert at(raw, "metadata.annotations") == {"x/y": '"metadata":{"z":1}'}

        play(scenario)

    @pytest.mark.parametrize(
        ("namespace", "body", "error", "words"),
        [
            pytest.param(
                NS, config_map(), AlreadyExistsError, 'configmaps "settings" already exists', id="there already"
            ),
            pytest.param(
                NS,
                config_map(""),
                InvalidError,
                'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
                id="without a name",
            ),
            pytest.param(
                NS,
                config_map("x", namespace="kube-system"),
                BadRequestError,
                "the namespace of the provided object does not match the namespace sent on the request",
                id="into another namespace than it says",
            ),
        ],
    )
    def test_invalid_create_requests_are_rejected(
        self, play: Play, namespace: str, body: Body, error: type[StatusError], words: str
    ) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map())
            with pytest.raises(error) as refusal:
                await client.create(CONFIG_MAP, namespace, body)
            assert str(refusal.value) == words

        play(scenario)

    def test_get_of_a_missing_object_is_not_found(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            with pytest.raises(NotFoundError) as refusal:
                await client.get(REPLICA_SET, NS, "web")
            assert str(refusal.value) == 'replicasets.apps "web" not found'
            assert refusal.value.details["name"] == "web"

        play(scenario)

    @pytest.mark.parametrize(
        ("selection", "found"),
        [
            pytest.param(Selection(NS), ["a", "b", "c"], id="all of a namespace"),
            pytest.param(Selection("kube-system"), ["d"], id="another namespace"),
            pytest.param(Selection(NS, labels="app=web"), ["a", "c"], id="by a label"),
            pytest.param(Selection(NS, labels="app=web,tier notin (back)"), ["a"], id="by two"),
            pytest.param(Selection(NS, labels="!app"), ["b"], id="by an absent label"),
            pytest.param(Selection(NS, fields="metadata.name=b"), ["b"], id="by name"),
            pytest.param(
                Selection(fields="metadata.name!=b,metadata.namespace=default"), ["a", "c"], id="by namespace"
            ),
            pytest.param(Selection(NS, fields="spec.nodeName="), ["a", "b"], id="pods without a node"),
            pytest.param(Selection(NS, fields="spec.nodeName==n1"), ["c"], id="pods of a node"),
            pytest.param(Selection(NS, fields="spec.schedulerName=other"), ["b"], id="pods of a scheduler"),
            pytest.param(
                Selection(NS, fields="status.phase!=Succeeded,status.phase!=Failed"), ["a", "b", "c"], id="alive"
            ),
            pytest.param(Selection(NS, labels="app=web", fields="spec.nodeName="), ["a"], id="by labels and fields"),
        ],
    )
    def test_list_returns_selected_objects_in_order_of_names(
        self, play: Play, selection: Selection, found: list[str]
    ) -> None:
        async def scenario(client: Client) -> None:
            await client.create(POD, "kube-system", pod("d"))
            revision = await create_all(
                client,
                pod("c", labels={"app": "web", "tier": "back"}, on="n1"),
                pod("b", scheduler="other"),
                pod("a", labels={"app": "web"}),
            )
            listing = await client.list(POD, selection)
            assert names(listing.items) == found
            assert (listing.continue_token, listing.remaining) == ("", None)
            assert int(listing.revision) >= int(revision)

        play(scenario)

    @pytest.mark.parametrize(
        ("selection", "words"),
        [
            pytest.param(Selection(labels="a in"), "found '', expected: '('", id="labels that break off"),
            pytest.param(Selection(fields="spec.nodeName"), "can't understand 'spec.nodeName'", id="fields without ="),
        ],
    )
    def test_an_invalid_selector_is_rejected(self, play: Play, selection: Selection, words: str) -> None:
        async def scenario(client: Client) -> None:
            with pytest.raises(BadRequestError):
                await client.list(POD, selection)

        play(scenario)

    def test_pages_of_a_list_have_the_same_revision(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await create_all(client, *(config_map(f"c{number}") for number in range(5)))
            first = await client.list(CONFIG_MAP, Selection(NS), limit=2)
            assert (names(first.items), first.remaining) == (["c0", "c1"], 3)
            await client.delete(CONFIG_MAP, NS, "c3")
            await create_all(client, config_map("c5"))
            second = await client.list(CONFIG_MAP, Selection(NS), limit=2, continue_token=first.continue_token)
            third = await client.list(CONFIG_MAP, Selection(NS), limit=2, continue_token=second.continue_token)
            assert (names(second.items), second.remaining) == (["c2", "c3"], 1)
            assert (names(third.items), third.continue_token) == (["c4"], "")
            assert first.revision == second.revision == third.revision

        play(scenario)

    def test_pages_with_a_selector_have_no_remaining_count(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await create_all(
                client, *(config_map(f"c{number}", labels={"odd": str(number % 2)}) for number in range(6))
            )
            odd = Selection(NS, labels="odd=1")
            first = await client.list(CONFIG_MAP, odd, limit=2)
            second = await client.list(CONFIG_MAP, odd, limit=2, continue_token=first.continue_token)
            assert (names(first.items), first.remaining) == (["c1", "c3"], None)
            assert (names(second.items), second.continue_token) == (["c5"], "")

        play(scenario)

    def test_an_invalid_continue_token_is_rejected(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            with pytest.raises(BadRequestError):
                await client.list(POD, limit=2, continue_token="made up")

        play(scenario)


class WatchingContract(PlayedContract):
    def test_a_watch_returns_changes_in_order(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            listing = await client.list(CONFIG_MAP, Selection(NS))
            async with client.watch(CONFIG_MAP, Selection(NS), since=listing.revision) as watch:
                await create_all(client, config_map("a"), config_map("b"))
                changed = await client.update(CONFIG_MAP, NS, "a", config_map("a", data={"x": "1"}))
                await client.delete(CONFIG_MAP, NS, "b")
                events = await events_of(watch, 4)
            assert told(events) == ["ADDED a", "ADDED b", "MODIFIED a", "DELETED b"]
            assert events[2].raw == changed
            assert events[2].revision == text_at(changed, "metadata.resourceVersion")
            revisions = [int(event.revision) for event in events]
            assert revisions == sorted(set(revisions))

        play(scenario)

    def test_a_delete_event_contains_the_last_state_with_the_revision_of_the_deletion(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            since = await create_all(client, config_map("a", data={"x": "1"}))
            async with client.watch(CONFIG_MAP, Selection(NS), since=since) as watch:
                await client.delete(CONFIG_MAP, NS, "a")
                (event,) = await events_of(watch, 1)
            assert at(event.raw, "data") == {"x": "1"}
            assert int(text_at(event.raw, "metadata.resourceVersion")) > int(since)
            assert event.revision == text_at(event.raw, "metadata.resourceVersion")

        play(scenario)

    def test_a_watch_from_an_old_revision_returns_all_later_changes(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            since = await create_all(client, config_map("a"))
            await create_all(client, config_map("b"), config_map("c"))
            async with client.watch(CONFIG_MAP, Selection(NS), since=since) as watch:
                assert told(await events_of(watch, 2)) == ["ADDED b", "ADDED c"]

        play(scenario)

    def test_a_watch_from_the_revision_of_an_event_returns_later_events(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            since = await create_all(client, config_map("a"))
            await create_all(client, config_map("b"), config_map("c"))
            async with client.watch(CONFIG_MAP, Selection(NS), since=since) as watch:
                first = (await events_of(watch, 1))[0]
            async with client.watch(CONFIG_MAP, Selection(NS), since=first.revision) as watch:
                assert told(await events_of(watch, 1))[0] == "ADDED c"

        play(scenario)

    @pytest.mark.parametrize(
        ("selection", "expected"),
        [
            pytest.param(
                Selection(NS, fields="spec.nodeName="),
                ["ADDED web", "DELETED web"],
                id="pods without a node, until they have one",
            ),
            pytest.param(
                Selection(NS, fields="spec.nodeName=n1"),
                ["ADDED web", "MODIFIED web", "MODIFIED web", "DELETED web", "ADDED last"],
                id="pods of a node, from when they come",
            ),
            pytest.param(
                Selection(NS, labels="app=web"),
                ["ADDED web", "MODIFIED web", "DELETED web", "ADDED last"],
                id="pods with a label, while they have it",
            ),
            pytest.param(Selection("kube-system"), ["ADDED last"], id="pods of another namespace"),
            pytest.param(
                Selection(NS, fields="spec.nodeName!=n2"),
                ["ADDED web", "MODIFIED web", "MODIFIED web", "MODIFIED web", "DELETED web", "ADDED last"],
                id="pods that stay in the selection all the time",
            ),
        ],
    )
    def test_objects_that_enter_or_leave_a_selection_are_added_or_deleted(
        self, play: Play, selection: Selection, expected: list[str]
    ) -> None:
        async def scenario(client: Client) -> None:
            since = (await client.list(POD)).revision
            async with client.watch(POD, selection, since=since) as watch:
                await client.create(POD, NS, pod("web", labels={"app": "web"}))
                await client.bind(NS, "web", "", "n1")
                patch: Body = {"metadata": {"labels": {"app": None}}}
                await client.patch(POD, NS, "web", patch, form=PatchForm.MERGE)
                await client.delete(POD, NS, "web", Deletion(grace_s=0))
                await client.create(POD, "kube-system", pod("last"))
                await client.create(POD, NS, pod("last", labels={"app": "web"}, on="n1"))
                events = await events_of(watch, len(expected))
            assert told(events)[: len(expected)] == expected

        play(scenario)

    def test_an_object_that_leaves_a_selection_is_deleted_with_its_previous_state(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            since = await create_all(client, pod("web"))
            async with client.watch(POD, Selection(NS, fields="spec.nodeName="), since=since) as watch:
                await client.bind(NS, "web", "", "n1")
                (event,) = await events_of(watch, 1)
            now = await client.get(POD, NS, "web")
            assert event.change is Change.DELETED
            assert at(event.raw, "spec.nodeName") is None
            assert event.revision == text_at(now, "metadata.resourceVersion")

        play(scenario)

    def test_an_event_is_decoded_as_a_view(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            since = (await client.list(POD)).revision
            async with client.watch(POD, since=since) as watch:
                raw = await client.create(POD, NS, pod("web", labels={"app": "web"}))
                (event,) = await events_of(watch, 1)
            view = event.view(Pod)
            assert (view.metadata.name, view.metadata.labels) == ("web", {"app": "web"})
            assert view.metadata.resource_version == text_at(raw, "metadata.resourceVersion")
            assert event.view(Pod) is view

        play(scenario)

    def test_a_waiting_watch_gets_an_event(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            seen: list[WatchEvent] = []

            async def read() -> None:
                async with client.watch(CONFIG_MAP, Selection(NS), since=since) as watch:
                    seen.extend(await events_of(watch, 1))

            since = (await client.list(CONFIG_MAP)).revision
            async with TaskGroup("watching") as group:
                group.start(read(), name="reader")
                await create_all(client, config_map("a"))
            assert told(seen) == ["ADDED a"]

        play(scenario)

    def test_a_watch_needs_a_valid_revision(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            with pytest.raises(BadRequestError):
                async with client.watch(POD, since="yesterday") as watch:
                    await watch.next_batch()

        play(scenario)
