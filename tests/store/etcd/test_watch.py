"""A watch can begin before the history that is kept here does: then etcd is asked for the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mooring.kit.clock import SystemClock
from mooring.store.etcd.store import EtcdStore
from mooring.store.interface import Record, RevisionGone
from tests.store.contract import DATABASE, DNS, NODE, PODS, WEB, fill, gather, names, told
from tests.store.etcd.builders import QUICK, Etcd, play, wait_watchers


def test_a_watch_begins_before_the_store_was_opened(etcd: Etcd) -> None:
    async def scenario(earlier: EtcdStore) -> None:
        since = await fill(earlier, WEB)
        await earlier.put(NODE, b"elsewhere")
        await earlier.put(WEB, b"two")
        await earlier.delete(WEB)
        async with await EtcdStore.open(etcd.url, SystemClock(), QUICK) as store:
            async with store.watch(PODS, since=since) as watch:
                assert told(await gather(watch.next_batch, 2)) == [(WEB, b"two", b"web"), (WEB, None, b"two")]
                await earlier.put(DNS, b"new")
                assert told(await gather(watch.next_batch, 1)) == [(DNS, b"new", None)]
            wait_watchers(etcd, 2)

    play(etcd.url, scenario)


def test_changes_that_come_while_etcd_is_asked_are_told_after_those_that_were_missed(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        since = await store.revision()
        for number in range(40):
            await store.put(WEB, b"%d" % number)
        async with store.watch(PODS, since=since) as watch:
            for number in range(40, 50):
                await store.put(WEB, b"%d" % number)
            changes = await gather(watch.next_batch, 50)
        assert [change.value for change in changes] == [b"%d" % number for number in range(50)]
        assert [change.previous.value for change in changes[1:] if change.previous] == [b"%d" % n for n in range(49)]

    play(etcd.url, scenario, replace(QUICK, changes_max=5))


def test_the_past_before_our_history_is_read_from_etcd(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        await fill(store, WEB, DATABASE, DNS, NODE)
        before = await store.revision()
        for key in (WEB, DATABASE, DNS):
            await store.delete(key)
        await fill(store, NODE, NODE, NODE)
        page = await store.list(PODS, at=before, limit=2)
        assert (names(page.records), page.remaining, page.revision) == (["database", "web"], 1, before)
        rest = await store.list(PODS, at=before, limit=2, start=page.next_start)
        assert (names(rest.records), rest.remaining, rest.next_start) == (["dns"], 0, "")
        assert await store.get(DNS, at=before) == Record(DNS, b"dns", before - 1)
        assert await store.get(f"{DNS}x", at=before) is None

    play(etcd.url, scenario, replace(QUICK, changes_max=2))


def test_more_than_may_have_been_missed_is_gone(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        since = await store.revision()
        await fill(store, WEB, WEB, WEB, WEB, WEB, WEB)
        await store.revision()
        with pytest.raises(RevisionGone):
            async with store.watch(PODS, since=since):
                pass
        assert store.statistics()["watches"] == 0

    play(etcd.url, scenario, replace(QUICK, changes_max=1, missed_changes_max=3))


def test_a_past_that_somebody_compacted_without_a_word_is_gone(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        since = await store.revision()
        revision = await fill(store, WEB, WEB, WEB, WEB)
        await store.revision()
        etcd.call("/v3/kv/compaction", {"revision": revision})
        with pytest.raises(RevisionGone) as gone:
            async with store.watch(PODS, since=since):
                pass
        assert gone.value.oldest == revision
        with pytest.raises(RevisionGone):
            await store.list(PODS, at=since)

    play(etcd.url, scenario, replace(QUICK, changes_max=1))
