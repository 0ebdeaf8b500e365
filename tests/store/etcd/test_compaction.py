"""All servers on one etcd take turns in compacting it, and hear of what the others did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.store.etcd.mirror import EtcdMirror
from mooring.store.etcd.settings import parse_address
from mooring.store.etcd.store import Compaction, EtcdStore
from mooring.store.etcd.wire import EtcdEndpoints, EtcdWire
from mooring.store.interface import RevisionGone
from tests.store.contract import PODS, WEB, fill
from tests.store.etcd.builders import QUICK, Etcd, play, play_two
from tests.waiting import until


def test_servers_take_turns_and_another_takes_over(etcd_alone: Etcd) -> None:
    async def scenario() -> None:
        endpoints = EtcdEndpoints(parse_address(etcd_alone.url), SystemClock(), QUICK)
        one, other = (Compaction(endpoints, EtcdMirror(QUICK)) for _ in range(2))
        compacted: list[int] = []
        # The first turn of all compacts nothing: the key holds a 0, as kube-apiserver's does.
        for server, is_theirs in [(one, True), (other, False), (one, True), (other, False), (other, True)]:
            assert await server.take_turn() is is_theirs
            compacted.append(await endpoints.ask(EtcdWire.read_compacted))
        await endpoints.close()
        assert compacted[:2] == [0, 0]
        assert 0 < compacted[2] == compacted[3] < compacted[4]

    run_real(scenario())


def test_a_turn_compacts_what_was_there_at_the_last_one(etcd_alone: Etcd) -> None:
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


def test_it_happens_by_itself(etcd_alone: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        before = await fill(store, WEB, WEB)
        # There may be turns before and during the writes, and a turn is announced before etcd compacts.
        await until(lambda: store.statistics()["revision_compacted"] >= before)
        ended = store.statistics()["compactions"]
        await until(lambda: store.statistics()["compactions"] > ended)
        with pytest.raises(RevisionGone):
            await store.list(PODS, at=before - 1)

    play(etcd_alone.url, scenario, replace(QUICK, compaction_interval_s=0.05))


def test_what_one_compacts_is_gone_for_the_other(etcd: Etcd) -> None:
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


def test_a_store_that_comes_later_knows_what_is_compacted(etcd: Etcd) -> None:
    async def scenario(one: EtcdStore) -> None:
        await one.compact(kept := await fill(one, WEB, WEB))
        async with await EtcdStore.open(etcd.url, SystemClock(), QUICK) as other:
            assert other.statistics()["revision_compacted"] == kept
            with pytest.raises(RevisionGone) as gone:
                await other.get(WEB, at=kept - 1)
            assert gone.value.oldest == kept

    play(etcd.url, scenario)
