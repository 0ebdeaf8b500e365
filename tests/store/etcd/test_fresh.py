"""Readers see what anybody wrote before them, and share their questions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup, run_bounded
from mooring.store.etcd.errors import EtcdUnreachable
from mooring.store.etcd.store import EtcdStore
from tests.store.contract import PODS, WEB, fill
from tests.store.etcd.builders import HASTY, QUICK, Etcd, Proxy, once_reachable, play


def test_a_hundred_readers_at_once_share_a_question(etcd: Etcd) -> None:
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


def test_a_reader_who_comes_while_a_question_is_under_way_waits_for_the_next(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        async with TaskGroup("readers") as group:
            group.start(store.get(WEB), name="first")
            await SystemClock().wait(0)
            await SystemClock().wait(0)
            group.start(store.get(WEB), name="second")
        assert store.statistics()["fresh_questions"] == 2

    play(etcd.url, scenario)


def test_a_revision_that_is_here_costs_no_question(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        revision = await fill(store, WEB)
        await store.revision()
        before = store.statistics()["fresh_questions"]
        assert len((await store.list(PODS, at=revision)).records) == 1
        async with store.watch(PODS, since=revision):
            assert store.statistics()["fresh_questions"] == before

    play(etcd.url, scenario)


def test_everybody_who_waits_is_told_that_etcd_is_away(etcd: Etcd) -> None:
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


def test_a_mirror_that_does_not_come_up_is_said_to_be_behind(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        revision = await store.revision()
        store._fresh._limits = replace(QUICK, request_s_max=0.05)
        with pytest.raises(EtcdUnreachable, match="its events come only up to"):
            await store._fresh.wait_reached(revision + 1)

    play(etcd.url, scenario)
