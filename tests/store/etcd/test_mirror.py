"""EtcdMirror: the state of etcd at the mirror's revision, its history, and its watches.

The mirror follows etcd after lost connections, restarts and compactions.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from mooring.store.etcd.mirror import EtcdMirror
from mooring.store.etcd.settings import EtcdLimits
from mooring.store.etcd.store import EtcdStore
from mooring.store.interface import OutcomeUnknown, Record, RevisionAhead, RevisionGone, StoreChange, StoreUnreachable
from tests.store.contract import DATABASE, DNS, PODS, WEB, fill, gather, told
from tests.store.etcd.builders import QUICK, Etcd, Proxy


def play(scenario: Callable[[EtcdMirror], Awaitable[None]]) -> None:
    """Run a scenario with a mirror that was loaded with one pod at revision 10."""

    async def started() -> None:
        mirror = EtcdMirror(EtcdLimits())
        mirror.load([Record(WEB, b"one", 7)], 10)
        await scenario(mirror)

    run(started())


def put(key: str, value: bytes, revision: int) -> StoreChange:
    return StoreChange(key, revision, value, None)


def deleted(key: str, revision: int) -> StoreChange:
    return StoreChange(key, revision, None, None)


def test_changes_get_the_previous_value_from_the_mirror() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        async with mirror.watch(PODS, since=10) as watch:
            mirror.apply([put(WEB, b"two", 11), deleted(WEB, 12), put(WEB, b"three", 13)])
            changes = await watch.next_batch()
        assert told(changes) == [(WEB, b"two", b"one"), (WEB, None, b"two"), (WEB, b"three", None)]
        assert await mirror.get(WEB) == Record(WEB, b"three", 13)

    play(scenario)


def test_the_history_is_read_by_revision() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        mirror.apply([put("foreign", b"", 11), put(WEB, b"two", 12), put(DNS, b"new", 12), put("foreign", b"", 20)])
        assert mirror.current_revision() == 20
        for at in (10, 11):
            assert [record.value for record in (await mirror.list(PODS, at=at)).records] == [b"one"]
        for at in (12, 19, 20):
            assert [record.value for record in (await mirror.list(PODS, at=at)).records] == [b"two", b"new"]
        with pytest.raises(RevisionAhead):
            await mirror.list(PODS, at=21)

    play(scenario)


def test_a_foreign_key_advances_the_revision_and_calls_when_advanced() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        advanced: list[str] = []
        async with mirror.watch(PODS, since=10) as watch:
            watch.when_advanced(lambda: advanced.append("now"))
            mirror.apply([put("foreign", b"", 11)])
            assert advanced == ["now"]
            assert watch.seen_revision() == 11

    play(scenario)


def test_wait_reached_returns_when_the_revision_is_reached() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        await mirror.wait_reached(10)
        async with TaskGroup("waiting") as group:
            waiting = group.start(mirror.wait_reached(12), name="twelve")
            mirror.apply([put(WEB, b"two", 11)])
            assert not waiting.done()
            mirror.apply([put(WEB, b"three", 13)])
            await waiting

    play(scenario)


def test_the_compaction_key_removes_history() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        mirror.apply([put(WEB, b"two", 11), put(WEB, b"three", 12), put("compact_rev_key", b"11", 13)])
        assert (mirror.compacted_revision(), mirror.oldest_revision()) == (11, 11)
        with pytest.raises(RevisionGone):
            await mirror.get(WEB, at=10)
        found = await mirror.get(WEB, at=11)
        assert found is not None
        assert found.value == b"two"
        mirror.apply([put("compact_rev_key", b"nonsense", 14), put("compact_rev_key", b"5", 15)])
        assert mirror.compacted_revision() == 11

    play(scenario)


def test_loading_again_ends_all_watches_with_revision_gone() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        mirror.apply([put(DNS, b"gone", 11), put("compact_rev_key", b"11", 12)])
        async with mirror.watch(PODS, since=12) as watch:
            mirror.load([Record(WEB, b"another", 3)], 5)
            with pytest.raises(RevisionGone):
                await watch.next_batch()
        assert [record.value for record in (await mirror.list("/")).records] == [b"another"]
        assert (mirror.current_revision(), mirror.compacted_revision()) == (5, 0)

    play(scenario)


def test_a_lost_connection_does_not_lose_or_repeat_changes(etcd: Etcd) -> None:
    async def scenario() -> None:
        clock = SystemClock()
        async with (
            Proxy(etcd.endpoint) as proxy,
            await EtcdStore.open(etcd.url, clock, QUICK) as writer,
            await EtcdStore.open(proxy.url, clock, QUICK) as store,
        ):
            seen: list[StoreChange] = []
            async with store.watch(PODS, since=await store.revision()) as watch:
                for number in range(4):
                    await writer.put(WEB, b"before %d" % number)
                    seen += await gather(watch.next_batch, 2 * number + 1 - len(seen))
                    await proxy.cut()
                    await writer.put(WEB, b"during %d" % number)
                    await proxy.mend()
                seen += await gather(watch.next_batch, 8 - len(seen))
            expected = [b"%s %d" % (when, number) for number in range(4) for when in (b"before", b"during")]
            assert [change.value for change in seen] == expected
            found = await store.get(WEB)
            assert found is not None
            assert found.value == b"during 3"
            assert store.statistics()["reconnections"] >= 4
            assert store.statistics()["loads"] == 1

    run_real(scenario())


def test_the_mirror_continues_after_a_restart_of_etcd(etcd_alone: Etcd) -> None:
    async def scenario() -> None:
        clock = SystemClock()
        acknowledged: list[bytes] = []
        seen: list[StoreChange] = []
        async with await EtcdStore.open(etcd_alone.url, clock, QUICK) as store:

            async def write() -> None:
                for number in range(60):
                    value = b"%d" % number
                    try:
                        await store.put(f"{PODS}default/p{number}", value)
                        acknowledged.append(value)
                    except (OutcomeUnknown, StoreUnreachable):
                        pass
                    await clock.wait(0.005)

            async with store.watch(PODS, since=await store.revision()) as watch:
                async with TaskGroup("writing") as group:
                    group.start(write(), name="writer")
                    await clock.wait(0.1)
                    etcd_alone.kill()
                    await clock.wait(0.1)
                    await asyncio.to_thread(etcd_alone.start)
                last = await store.put(WEB, b"last")
                while not seen or seen[-1].revision < last:
                    seen += await watch.next_batch()
            values = [change.value for change in seen]
            assert [value for value in values if value in acknowledged] == acknowledged
            assert len(values) == len(set(values))
            assert len(acknowledged) > 30

    run_real(scenario())


def test_a_compaction_during_a_lost_connection_reloads_the_mirror_and_ends_watches(etcd: Etcd) -> None:
    async def scenario() -> None:
        clock = SystemClock()
        async with (
            Proxy(etcd.endpoint) as proxy,
            await EtcdStore.open(etcd.url, clock, QUICK) as writer,
            await EtcdStore.open(proxy.url, clock, QUICK) as store,
        ):
            await fill(writer, WEB, DNS)
            async with store.watch(PODS, since=await store.revision()) as watch:
                await proxy.cut()
                await writer.delete(DNS)
                await writer.compact(await fill(writer, WEB, DATABASE))
                await proxy.mend()
                with pytest.raises(RevisionGone):
                    await watch.next_batch()
            assert [record.key for record in (await store.list(PODS)).records] == [DATABASE, WEB]
            assert store.statistics()["loads"] == 2

    run_real(scenario())


def test_an_etcd_restored_to_an_older_state_is_loaded_again(etcd_alone: Etcd) -> None:
    async def scenario() -> None:
        async with await EtcdStore.open(etcd_alone.url, SystemClock(), QUICK) as store:
            await fill(store, WEB, DNS, DATABASE)
            await store.list(PODS)
            etcd_alone.kill()
            shutil.rmtree(etcd_alone.directory / "data")
            etcd_alone.start()
            while True:
                try:
                    page = await store.list(PODS)
                except StoreUnreachable:
                    continue
                if not page.records:
                    break
            assert await store.put(WEB, b"new") == 2
            assert [record.value for record in (await store.list(PODS)).records] == [b"new"]

    run_real(scenario())
