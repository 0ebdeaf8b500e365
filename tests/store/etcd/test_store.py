"""EtcdStore: the store contract, several stores on one etcd, watches, and errors.

Watches and reads before the local history read the missing part from etcd.
Fresh reads return earlier writes of other stores and share requests.
Compaction: the stores on one etcd take turns.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup, run_bounded
from mooring.store.etcd.errors import EtcdUnreachable
from mooring.store.etcd.mirror import EtcdMirror
from mooring.store.etcd.settings import parse_address
from mooring.store.etcd.store import Compaction, EtcdStore
from mooring.store.etcd.wire import EtcdEndpoints, EtcdWire
from mooring.store.interface import (
    MUST_NOT_EXIST,
    OutcomeUnknown,
    Record,
    RevisionGone,
    Store,
    StoreBusy,
    StoreChange,
    StoreClosed,
    ValueTooLarge,
    WriteConflict,
)
from tests.store.contract import (
    DATABASE,
    DNS,
    NODE,
    PODS,
    WEB,
    Play,
    Scenario,
    StoreContract,
    fill,
    gather,
    names,
    told,
)
from tests.store.etcd.builders import HASTY, QUICK, Etcd, Proxy, once_reachable, play, play_two, wait_watchers
from tests.waiting import until


class TestTheContract(StoreContract):
    @pytest.fixture
    def play(self, etcd: Etcd) -> Play:
        def play_on_etcd(scenario: Scenario) -> None:
            play(etcd.url, scenario)

        return play_on_etcd


# -------------------------------------------------------------------------------------- several on one etcd


def test_one_store_reads_writes_of_the_other(etcd: Etcd) -> None:
    async def scenario(one: EtcdStore, other: EtcdStore) -> None:
        for number in range(20):
            revision = await one.put(WEB, b"%d" % number)
            found = await other.get(WEB)
            assert found is not None
            assert (found.value, found.revision) == (b"%d" % number, revision)
            assert [record.value for record in (await other.list(PODS)).records] == [b"%d" % number]
            assert await other.revision() == revision

    play_two(etcd.url, scenario)


def test_two_stores_return_the_same_changes_in_the_same_order(etcd: Etcd) -> None:
    async def scenario(one: EtcdStore, other: EtcdStore) -> None:
        since = await one.revision()

        async def write(number: int) -> None:
            store = (one, other)[number % 2]
            await store.put(f"{PODS}default/p{number % 7}", b"%d" % number)

        async with one.watch(PODS, since=since) as at_one, other.watch(PODS, since=since) as at_other:
            await run_bounded(write, range(60), limit=8, name="writers")
            changes = [await gather(watch.next_batch, 60) for watch in (at_one, at_other)]
        assert changes[0] == changes[1]
        revisions = [change.revision for change in changes[0]]
        assert revisions == sorted(set(revisions))

    play_two(etcd.url, scenario)


def test_only_one_of_several_conditional_writes_succeeds(etcd: Etcd) -> None:
    async def scenario(one: EtcdStore, other: EtcdStore) -> None:
        seen = await one.put(WEB, b"0")

        async def race(number: int) -> int | None:
            try:
                return await (one, other)[number % 2].put(WEB, b"%d" % number, if_revision=seen)
            except WriteConflict as conflict:
                losers.append(conflict)
                return None

        losers: list[WriteConflict] = []
        outcomes = await run_bounded(race, range(10), limit=10, name="race")
        (winner,) = [revision for revision in outcomes if revision is not None]
        assert [loser.current.revision for loser in losers if loser.current is not None] == [winner] * 9

    play_two(etcd.url, scenario)


def test_concurrent_increments_with_retries_lose_no_update(etcd: Etcd) -> None:
    async def scenario(one: EtcdStore, other: EtcdStore) -> None:
        async def increment(number: int) -> None:
            store = (one, other)[number % 2]
            while True:
                found = await store.get(WEB)
                value, revision = (int(found.value), found.revision) if found else (0, MUST_NOT_EXIST)
                try:
                    await store.put(WEB, b"%d" % (value + 1), if_revision=revision)
                    return
                except WriteConflict:
                    continue

        await run_bounded(increment, range(20), limit=4, name="counting")
        found = await one.get(WEB)
        assert found is not None
        assert found.value == b"20"

    play_two(etcd.url, scenario)


def test_a_store_opened_later_reads_all_records_in_pages(etcd: Etcd) -> None:
    async def scenario(one: EtcdStore) -> None:
        revision = await fill(one, WEB, NODE, DNS, DATABASE)
        few_at_once = replace(QUICK, loaded_records_max=3)
        async with await EtcdStore.open(etcd.url, SystemClock(), few_at_once) as other:
            page = await other.list("/registry/")
            assert [record.key for record in page.records] == [NODE, DATABASE, WEB, DNS]
            assert page.revision == revision

    play(etcd.url, scenario)


def test_foreign_keys_advance_the_revision_and_are_not_listed(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        before = await store.put(WEB, b"one")
        etcd.call("/v3/kv/put", {"key": "bm8gc2xhc2g=", "value": "eA=="})
        assert await store.revision() == before + 1
        assert [record.key for record in (await store.list("/")).records] == [WEB]
        async with store.watch(PODS, since=before) as watch:
            assert watch.seen_revision() == before + 1
            await store.put(WEB, b"two")
            assert told(await gather(watch.next_batch, 1)) == [(WEB, b"two", b"one")]

    play(etcd.url, scenario)


def test_all_changes_of_one_revision_are_returned(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        since = await fill(store, WEB, DNS, NODE)
        async with store.watch(PODS, since=since) as watch:
            etcd.call("/v3/kv/deleterange", {"key": "L3JlZ2lzdHJ5Lw==", "range_end": "L3JlZ2lzdHJ5MA=="})
            assert told(await gather(watch.next_batch, 2)) == [(WEB, None, b"web"), (DNS, None, b"dns")]
        async with store.watch(PODS, since=since) as watch:
            assert len(await gather(watch.next_batch, 2)) == 2
        assert len((await store.list("/registry/", at=since)).records) == 3

    play(etcd.url, scenario)


# ------------------------------------------------------------------------------------------------- watches


def test_two_hundred_watches_use_one_watch_of_etcd(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        since = await store.revision()
        watches = [await store.watch(PODS, since=since).__aenter__() for _ in range(200)]
        await store.put(WEB, b"one")
        changes = [(await gather(watch.next_batch, 1))[0] for watch in watches]
        assert {id(change) for change in changes} == {id(changes[0])}
        wait_watchers(etcd, 1)
        assert store.statistics()["watches"] == 200
        for watch in watches:
            await watch.__aexit__(None, None, None)

    play(etcd.url, scenario)


def test_only_a_watch_that_lags_behind_ends_with_revision_gone(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        since = await store.revision()
        async with store.watch(PODS, since=since) as slow, store.watch(f"{PODS}default/", since=since) as quick:
            seen: list[StoreChange] = []
            for number in range(6):
                await store.put(WEB, b"%d" % number)
                seen += await gather(quick.next_batch, 1)
            with pytest.raises(RevisionGone):
                await slow.next_batch()
        assert [change.value for change in seen] == [b"0", b"1", b"2", b"3", b"4", b"5"]

    play(etcd.url, scenario, replace(QUICK, buffer_max=3))


# --------------------------------------------------------------------------------------------------- errors


def test_a_value_too_large_for_etcd_is_rejected(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        with pytest.raises(ValueTooLarge, match="max-request-bytes"):
            await store.put(WEB, b"x" * 2_000_000)
        with pytest.raises(ValueTooLarge):
            await store.put(WEB, b"x" * 8_000_000, if_revision=MUST_NOT_EXIST)
        assert await store.get(WEB) is None

    play(etcd.url, scenario)


def test_writes_beyond_the_limit_of_waiting_writes_are_rejected(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        async with TaskGroup("writers") as group:
            first = group.start(store.put(WEB, b"one"), name="first")
            await SystemClock().wait(0)
            with pytest.raises(StoreBusy):
                await store.put(DNS, b"two")
        assert first.result() > 0
        await store.put(DNS, b"two")

    play(etcd.url, scenario, replace(QUICK, waiting_writes_max=1))


def test_a_closed_store_rejects_reads_and_writes(etcd: Etcd) -> None:
    async def scenario() -> None:
        store: Store
        async with await EtcdStore.open(etcd.url, SystemClock(), QUICK) as opened:
            store = opened
        with pytest.raises(StoreClosed):
            await store.put(WEB, b"one")
        with pytest.raises(StoreClosed):
            await store.get(WEB)
        await opened.close()

    run_real(scenario())


def test_closing_ends_waiting_reads_and_writes_with_an_error(etcd_alone: Etcd) -> None:
    async def scenario() -> None:
        clock = SystemClock()
        store = await EtcdStore.open(etcd_alone.url, clock, QUICK)
        etcd_alone.pause()

        async def read() -> None:
            with pytest.raises(StoreClosed):
                await store.get(WEB)

        async def write() -> None:
            with pytest.raises(OutcomeUnknown):
                await store.put(WEB, b"one")

        async with TaskGroup("waiting") as group:
            group.start(read(), name="reader")
            group.start(write(), name="writer")
            await until(lambda: store.statistics()["writes_waiting"] == 1)
            await store.close()

    run_real(scenario())


def test_a_watch_may_begin_before_the_store_was_opened(etcd: Etcd) -> None:
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


def test_changes_during_the_read_of_missed_changes_are_returned_after_them(etcd: Etcd) -> None:
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


def test_reads_before_the_local_history_are_read_from_etcd(etcd: Etcd) -> None:
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


def test_a_watch_with_too_many_missed_changes_is_revision_gone(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        since = await store.revision()
        await fill(store, WEB, WEB, WEB, WEB, WEB, WEB)
        await store.revision()
        with pytest.raises(RevisionGone):
            async with store.watch(PODS, since=since):
                pass
        assert store.statistics()["watches"] == 0

    play(etcd.url, scenario, replace(QUICK, changes_max=1, missed_changes_max=3))


def test_a_revision_compacted_by_another_program_is_gone(etcd: Etcd) -> None:
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


def test_concurrent_readers_share_a_request(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        await fill(store, WEB)

        async def read(number: int) -> bytes | None:
            found = await store.get(WEB)
            return found.value if found is not None else None

        assert await run_bounded(read, range(100), limit=100, name="readers") == [b"web"] * 100
        counts = store.statistics()
        assert counts["fresh_readers"] == 100
        assert counts["fresh_questions"] <= 3

    play(etcd.url, scenario)


def test_a_read_during_a_request_waits_for_the_next_request(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        async with TaskGroup("readers") as group:
            group.start(store.get(WEB), name="first")
            await SystemClock().wait(0)
            await SystemClock().wait(0)
            group.start(store.get(WEB), name="second")
        assert store.statistics()["fresh_questions"] == 2

    play(etcd.url, scenario)


def test_reads_at_a_known_revision_need_no_request(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        revision = await fill(store, WEB)
        await store.revision()
        before = store.statistics()["fresh_questions"]
        assert len((await store.list(PODS, at=revision)).records) == 1
        async with store.watch(PODS, since=revision):
            assert store.statistics()["fresh_questions"] == before

    play(etcd.url, scenario)


def test_waiting_readers_get_an_error_if_etcd_is_unreachable(etcd: Etcd) -> None:
    async def scenario() -> None:
        async with (
            Proxy(etcd.endpoint) as proxy,
            await EtcdStore.open(proxy.url, SystemClock(), HASTY) as store,
        ):
            await proxy.cut()

            async def read(number: int) -> None:
                with pytest.raises(EtcdUnreachable):
                    await store.get(WEB)

            await run_bounded(read, range(5), limit=5, name="readers")
            await proxy.mend()
            assert await once_reachable(lambda: store.get(WEB)) is None

    run_real(scenario())


def test_a_mirror_that_does_not_reach_the_revision_is_an_error(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        revision = await store.revision()
        store._fresh._limits = replace(QUICK, request_s_max=0.05)
        with pytest.raises(EtcdUnreachable, match="its events come only up to"):
            await store._fresh.wait_reached(revision + 1)

    play(etcd.url, scenario)


def test_two_servers_take_turns_in_compaction_and_replace_each_other(etcd_alone: Etcd) -> None:
    async def scenario() -> None:
        endpoints = EtcdEndpoints(parse_address(etcd_alone.url), SystemClock(), QUICK)
        one, other = (Compaction(endpoints, EtcdMirror(QUICK)) for _ in range(2))
        compacted: list[int] = []
        # The first turn compacts nothing: the key contains 0, as with kube-apiserver.
        for server, is_theirs in [(one, True), (other, False), (one, True), (other, False), (other, True)]:
            assert await server.take_turn() is is_theirs
            compacted.append(await endpoints.call(EtcdWire.read_compacted))
        await endpoints.close()
        assert compacted[:2] == [0, 0]
        assert 0 < compacted[2] == compacted[3] < compacted[4]

    run_real(scenario())


def test_a_turn_compacts_to_the_revision_of_the_last_turn(etcd_alone: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        before = await fill(store, WEB)
        await store._compaction.take_turn()
        between = await fill(store, WEB, WEB)
        assert len((await store.list(PODS, at=before)).records) == 1
        await store._compaction.take_turn()
        with pytest.raises(RevisionGone):
            await store.list(PODS, at=before)
        assert len((await store.list(PODS, at=between)).records) == 1
        assert store.statistics()["compactions"] == 1

    play(etcd_alone.url, scenario)


def test_compaction_runs_periodically(etcd_alone: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        before = await fill(store, WEB, WEB)
        # There may be turns before and during the writes, and a turn is announced before etcd compacts.
        await until(lambda: store.statistics()["revision_compacted"] >= before)
        ended = store.statistics()["compactions"]
        await until(lambda: store.statistics()["compactions"] > ended)
        with pytest.raises(RevisionGone):
            await store.list(PODS, at=before - 1)

    play(etcd_alone.url, scenario, replace(QUICK, compaction_interval_s=0.05))


def test_a_compaction_by_one_store_applies_to_the_other(etcd: Etcd) -> None:
    async def scenario(one: EtcdStore, other: EtcdStore) -> None:
        before = await fill(one, WEB)
        kept = await fill(one, WEB, WEB)
        assert len((await other.list(PODS, at=before)).records) == 1
        await one.compact(kept)
        await other.revision()
        with pytest.raises(RevisionGone):
            await other.list(PODS, at=before)
        with pytest.raises(RevisionGone):
            async with other.watch(PODS, since=before):
                pass
        async with other.watch(PODS, since=kept):
            assert other.statistics()["revision_compacted"] == kept

    play_two(etcd.url, scenario)


def test_a_store_opened_later_reads_the_compacted_revision(etcd: Etcd) -> None:
    async def scenario(one: EtcdStore) -> None:
        await one.compact(kept := await fill(one, WEB, WEB))
        async with await EtcdStore.open(etcd.url, SystemClock(), QUICK) as other:
            assert other.statistics()["revision_compacted"] == kept
            with pytest.raises(RevisionGone) as gone:
                await other.get(WEB, at=kept - 1)
            assert gone.value.oldest == kept

    play(etcd.url, scenario)
