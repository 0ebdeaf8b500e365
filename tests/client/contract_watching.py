"""The contract of clients: watching."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP, POD
from mooring.api.views.pod import Pod
from mooring.client.errors import BadRequestError
from mooring.client.interface import Change, Client, Deletion, PatchForm, Selection, WatchEvent
from mooring.kit.tasks import TaskGroup
from tests.client.contract_play import NS, Play, PlayedContract, create_all, events_of, told
from tests.client.objects import Body, at, config_map, pod, text_at


class WatchingContract(PlayedContract):
    def test_a_watch_tells_each_change_in_order(self, play: Play) -> None:
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

    def test_a_deleted_object_comes_as_it_was_with_the_revision_of_its_deletion(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            since = await create_all(client, config_map("a", data={"x": "1"}))
            async with client.watch(CONFIG_MAP, Selection(NS), since=since) as watch:
                await client.delete(CONFIG_MAP, NS, "a")
                (event,) = await events_of(watch, 1)
            assert at(event.raw, "data") == {"x": "1"}
            assert int(text_at(event.raw, "metadata.resourceVersion")) > int(since)
            assert event.revision == text_at(event.raw, "metadata.resourceVersion")

        play(scenario)

    def test_a_watch_from_the_past_catches_up(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            since = await create_all(client, config_map("a"))
            await create_all(client, config_map("b"), config_map("c"))
            async with client.watch(CONFIG_MAP, Selection(NS), since=since) as watch:
                assert told(await events_of(watch, 2)) == ["ADDED b", "ADDED c"]

        play(scenario)

    def test_a_watch_that_begins_at_an_event_goes_on_behind_it(self, play: Play) -> None:
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
    def test_objects_move_into_and_out_of_a_selection(
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

    def test_an_object_that_moves_out_comes_as_it_was_before(self, play: Play) -> None:
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

    def test_an_event_can_be_read_as_a_view(self, play: Play) -> None:
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

    def test_a_reader_who_waits_is_told(self, play: Play) -> None:
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

    def test_a_watch_needs_to_know_where_to_start(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            with pytest.raises(BadRequestError):
                async with client.watch(POD, since="yesterday") as watch:
                    await watch.next_batch()

        play(scenario)
