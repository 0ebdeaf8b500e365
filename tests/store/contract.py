"""The contract of stores. The test file of a store inherits `StoreContract` and overrides `play`.

The tests do not assume the first revision, or revisions without gaps: an etcd is shared by several tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import pytest

from mooring.kit.tasks import TaskGroup
from mooring.store.interface import (
    MUST_NOT_EXIST,
    Record,
    RevisionAhead,
    RevisionGone,
    Store,
    StoreChange,
    WriteConflict,
)

Scenario: TypeAlias = Callable[[Store], Awaitable[None]]
Play: TypeAlias = Callable[[Scenario], None]

PODS = "/registry/pods/"
WEB = "/registry/pods/default/web"
DATABASE = "/registry/pods/default/database"
DNS = "/registry/pods/kube-system/dns"
NODE = "/registry/minions/n1"


async def fill(store: Store, *keys: str) -> int:
    revision = 0
    for key in keys:
        revision = await store.put(key, key.rpartition("/")[2].encode())
    return revision


def told(changes: Sequence[StoreChange]) -> list[tuple[str, bytes | None, bytes | None]]:
    """Key, value and previous value."""
    return [(change.key, change.value, change.previous.value if change.previous else None) for change in changes]


def names(records: Sequence[Record]) -> list[str]:
    return [record.key.rpartition("/")[2] for record in records]


class StoreContract:
    """Inherit it and override `play`."""

    @pytest.fixture
    def play(self) -> Play:
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------- records

    def test_get_returns_the_record_with_the_revision_of_its_put(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            revision = await store.put(WEB, b"one")
            assert await store.get(WEB) == Record(WEB, b"one", revision)
            assert await store.revision() == revision
            assert await store.get(DATABASE) is None

        play(scenario)

    def test_each_write_has_a_higher_revision_and_none_is_below_2(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            revisions = [await store.revision(), await store.put(WEB, b"one"), await store.put(WEB, b"two")]
            revisions += [await store.put(NODE, b"n"), await store.delete(WEB)]
            assert revisions == sorted(set(revisions))
            assert revisions[0] >= 1

        play(scenario)

    @pytest.mark.parametrize(
        ("exists", "condition", "is_written"),
        [
            pytest.param(False, "whatever", True, id="no condition, no record"),
            pytest.param(True, "whatever", True, id="no condition, a record"),
            pytest.param(False, "nothing", True, id="must not exist, no record"),
            pytest.param(True, "nothing", False, id="must not exist, a record"),
            pytest.param(True, "the same", True, id="the current revision"),
            pytest.param(True, "older", False, id="an old revision"),
            pytest.param(False, "older", False, id="an old revision, no record"),
        ],
    )
    def test_conditional_puts(self, play: Play, exists: bool, condition: str, is_written: bool) -> None:
        async def scenario(store: Store) -> None:
            older = await store.put(WEB, b"older")
            current = await store.put(WEB, b"current") if exists else await store.delete(WEB)
            if_revision = {"whatever": None, "nothing": MUST_NOT_EXIST, "the same": current, "older": older}[condition]
            if is_written:
                revision = await store.put(WEB, b"new", if_revision=if_revision)
                assert await store.get(WEB) == Record(WEB, b"new", revision)
                return
            with pytest.raises(WriteConflict) as conflict:
                await store.put(WEB, b"new", if_revision=if_revision)
            expected = Record(WEB, b"current", current) if exists else None
            assert conflict.value.current == expected
            assert await store.get(WEB) == expected
            assert await store.revision() == current

        play(scenario)

    @pytest.mark.parametrize(
        ("exists", "condition", "is_deleted"),
        [
            pytest.param(True, "whatever", True, id="no condition, a record"),
            pytest.param(False, "whatever", False, id="no condition, no record"),
            pytest.param(True, "the same", True, id="the current revision"),
            pytest.param(True, "older", False, id="an old revision"),
            pytest.param(False, "older", False, id="an old revision, no record"),
        ],
    )
    def test_conditional_deletes(self, play: Play, exists: bool, condition: str, is_deleted: bool) -> None:
        async def scenario(store: Store) -> None:
            older = await store.put(WEB, b"older")
            current = await store.put(WEB, b"current") if exists else await store.delete(WEB)
            if_revision = {"whatever": None, "the same": current, "older": older}[condition]
            if is_deleted:
                assert await store.delete(WEB, if_revision=if_revision) > current
                assert await store.get(WEB) is None
                return
            with pytest.raises(WriteConflict) as conflict:
                await store.delete(WEB, if_revision=if_revision)
            assert conflict.value.current == (Record(WEB, b"current", current) if exists else None)
            assert await store.revision() == current

        play(scenario)

    # ---------------------------------------------------------------------------------------- listing

    @pytest.mark.parametrize(
        ("folder", "found"),
        [
            pytest.param("/registry/pods/", ["database", "web", "dns"], id="all namespaces"),
            pytest.param("/registry/pods/default/", ["database", "web"], id="one namespace"),
            pytest.param("/registry/pods/def/", [], id="a part of a name"),
            pytest.param("/registry/", ["n1", "database", "web", "dns", "t"], id="all kinds"),
            pytest.param("/registry/podtemplates/", ["t"], id="a kind whose name begins like that of another"),
        ],
    )
    def test_a_folder_is_listed_in_order_of_keys(self, play: Play, folder: str, found: list[str]) -> None:
        async def scenario(store: Store) -> None:
            revision = await fill(store, WEB, NODE, DNS, "/registry/podtemplates/default/t", DATABASE)
            page = await store.list(folder)
            assert names(page.records) == found
            assert (page.revision, page.next_start, page.remaining) == (revision, "", 0)

        play(scenario)

    def test_a_paginated_list_contains_all_records(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            keys = [f"/registry/pods/{namespace}/p{number}" for namespace in "ab" for number in range(5)]
            await fill(store, *reversed(keys))
            found, remaining, start = list[str](), list[int](), ""
            while True:
                page = await store.list(PODS, start=start, limit=4)
                found += [record.key for record in page.records]
                remaining.append(page.remaining)
                start = page.next_start
                if not start:
                    break
            assert found == keys
            assert remaining == [6, 2, 0]

        play(scenario)

    def test_the_last_page_has_no_next_start(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            await fill(store, WEB, DATABASE)
            page = await store.list(PODS, limit=2)
            assert (len(page.records), page.next_start, page.remaining) == (2, "", 0)

        play(scenario)

    def test_reads_at_an_old_revision_return_the_old_state(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            await fill(store, WEB, DATABASE)
            before = await store.revision()
            await store.put(WEB, b"changed")
            await store.delete(DATABASE)
            await store.put(DNS, b"new")
            page = await store.list(PODS, at=before)
            assert [(record.key, record.value) for record in page.records] == [(DATABASE, b"database"), (WEB, b"web")]
            assert page.revision == before
            first = await store.list(PODS, at=before, limit=1)
            assert (names(first.records), first.remaining) == (["database"], 1)
            second = await store.list(PODS, at=before, limit=1, start=first.next_start)
            assert (names(second.records), second.remaining) == (["web"], 0)
            deleted, created = await store.get(DATABASE, at=before), await store.get(DNS, at=before)
            assert deleted is not None
            assert (deleted.value, created) == (b"database", None)

        play(scenario)

    def test_reads_at_a_future_revision_are_errors(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            ahead = await store.put(WEB, b"one") + 1
            with pytest.raises(RevisionAhead):
                await store.list(PODS, at=ahead)
            with pytest.raises(RevisionAhead):
                await store.get(WEB, at=ahead)

        play(scenario)

    # --------------------------------------------------------------------------------------- watching

    def test_a_watch_returns_changes_of_its_folder_in_order(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            since = await store.put(WEB, b"one")
            async with store.watch(PODS, since=since) as watch:
                await store.put(WEB, b"two")
                await store.put(NODE, b"elsewhere")
                await store.put(DNS, b"new")
                last = await store.delete(WEB)
                changes = await gather(watch.next_batch, 3)
            assert told(changes) == [(WEB, b"two", b"one"), (DNS, b"new", None), (WEB, None, b"two")]
            assert changes[-1].revision == last

        play(scenario)

    def test_a_watch_from_an_old_revision_returns_old_and_new_changes(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            since = await store.revision()
            await fill(store, WEB, NODE, DATABASE)
            async with store.watch(PODS, since=since) as watch:
                assert told(await gather(watch.next_batch, 2)) == [(WEB, b"web", None), (DATABASE, b"database", None)]
                await store.put(WEB, b"later")
                assert told(await gather(watch.next_batch, 1)) == [(WEB, b"later", b"web")]

        play(scenario)

    def test_a_change_wakes_a_waiting_reader(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            seen: list[StoreChange] = []

            async def read() -> None:
                async with store.watch(PODS, since=await store.revision()) as watch:
                    began.set_result(None)
                    seen.extend(await gather(watch.next_batch, 1))

            async with TaskGroup("watching") as group:
                began = new_future()
                group.start(read(), name="reader")
                await began
                await store.put(NODE, b"elsewhere")
                await store.put(WEB, b"one")
            assert told(seen) == [(WEB, b"one", None)]

        play(scenario)

    def test_watches_are_independent(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            since = await store.revision()
            async with store.watch(PODS, since=since) as all_pods, store.watch(f"{PODS}default/", since=since) as some:
                await fill(store, WEB, DNS)
                assert len(await gather(all_pods.next_batch, 2)) == 2
                assert told(await gather(some.next_batch, 1)) == [(WEB, b"web", None)]

        play(scenario)

    def test_seen_revision_of_a_watch_includes_returned_changes(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            async with store.watch(PODS, since=await store.revision()) as watch:
                revision = await store.put(WEB, b"one")
                await gather(watch.next_batch, 1)
                assert watch.seen_revision() >= revision

        play(scenario)

    def test_when_advanced_calls_back_once_when_the_revision_advances(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            advanced = new_future()
            async with store.watch(PODS, since=await store.revision()) as watch:
                watch.when_advanced(lambda: advanced.set_result(None))
                await store.put(NODE, b"elsewhere")
                await store.put(NODE, b"elsewhere again")
                await advanced

        play(scenario)

    def test_interrupt_ends_a_wait_with_an_empty_batch(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            async with store.watch(PODS, since=await store.revision()) as watch, TaskGroup("watching") as group:
                reader = group.start(watch.next_batch(), name="reader")
                watch.interrupt()
                assert not await reader

        play(scenario)

    def test_a_watch_from_a_future_revision_is_an_error(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            with pytest.raises(RevisionAhead):
                async with store.watch(PODS, since=await store.revision() + 1):
                    pass

        play(scenario)

    # ------------------------------------------------------------------------------------- compaction

    def test_compaction_removes_old_revisions_and_keeps_the_current_state(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            before = await store.put(WEB, b"one")
            kept = await store.put(WEB, b"two")
            await store.put(WEB, b"three")
            await store.compact(kept)
            await store.compact(before)
            with pytest.raises(RevisionGone):
                await store.list(PODS, at=before)
            with pytest.raises(RevisionGone):
                await store.get(WEB, at=before)
            with pytest.raises(RevisionGone):
                async with store.watch(PODS, since=before):
                    pass
            assert [record.value for record in (await store.list(PODS, at=kept)).records] == [b"two"]
            async with store.watch(PODS, since=kept) as watch:
                assert told(await gather(watch.next_batch, 1)) == [(WEB, b"three", b"two")]
            assert [record.value for record in (await store.list(PODS)).records] == [b"three"]

        play(scenario)

    def test_compaction_at_a_future_revision_is_an_error(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            with pytest.raises(RevisionAhead):
                await store.compact(await store.revision() + 1)

        play(scenario)

    def test_statistics_contain_the_revision(self, play: Play) -> None:
        async def scenario(store: Store) -> None:
            revision = await fill(store, WEB, NODE)
            assert store.statistics()["revision"] == revision

        play(scenario)


def new_future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def gather(next_batch: Callable[[], Awaitable[Sequence[StoreChange]]], count: int) -> list[StoreChange]:
    """At least `count` changes, in batches of any size."""
    changes: list[StoreChange] = []
    while len(changes) < count:
        changes += await next_batch()
    return changes
