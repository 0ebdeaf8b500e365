"""The mirror is kept up to date, whatever happens to the connection, to etcd, or to its history."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from mooring.store.etcd.store import EtcdStore
from mooring.store.interface import OutcomeUnknown, RevisionGone, StoreChange, StoreUnreachable
from tests.store.contract import DATABASE, DNS, PODS, WEB, fill, gather
from tests.store.etcd.builders import QUICK, Etcd, Proxy


def test_a_cut_connection_loses_no_change_and_repeats_none(etcd: Etcd) -> None:
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


def test_an_etcd_that_is_killed_and_started_again_is_followed_on(etcd_alone: Etcd) -> None:
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


def test_what_was_compacted_while_we_were_away_is_loaded_again_and_the_watches_are_told(etcd: Etcd) -> None:
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
            assert [each.key for each in (await store.list(PODS)).records] == [DATABASE, WEB]
            assert store.statistics()["loads"] == 2

    run_real(scenario())


def test_an_etcd_that_was_put_back_to_an_older_state_is_loaded_again(etcd_alone: Etcd) -> None:
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
            assert [each.value for each in (await store.list(PODS)).records] == [b"new"]

    run_real(scenario())
