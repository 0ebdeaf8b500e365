"""A watch of the memory store has one reader, and says how far he has seen."""

from __future__ import annotations

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.store.memory import MemoryStore
from tests.store.contract import NODE, PODS, WEB


def test_a_second_reader_is_a_mistake() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        async with store.watch(PODS, since=await store.revision()) as watch, TaskGroup("readers") as group:
            group.start(watch.next_batch(), name="first")
            group.start(watch.next_batch(), name="second")

    with pytest.raises(BaseExceptionGroup) as failures:
        run(scenario())
    assert "has one reader, not two" in str(failures.value.exceptions[0])


def test_changes_elsewhere_count_as_seen_but_not_what_waits_in_the_buffer() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        start = await store.revision()
        async with store.watch(PODS, since=start) as watch:
            assert watch.seen_revision() == start
            elsewhere = await store.put(NODE, b"n")
            assert watch.seen_revision() == elsewhere
            mine = await store.put(WEB, b"w")
            assert watch.seen_revision() < mine
            await watch.next_batch()
            assert watch.seen_revision() == mine

    run(scenario())


def test_a_reader_who_is_cancelled_loses_nothing() -> None:
    async def scenario(clock: VirtualClock) -> None:
        store = MemoryStore()
        async with store.watch(PODS, since=await store.revision()) as watch:
            async with TaskGroup("reading") as group:
                group.start_background(watch.next_batch(), name="reader")
                await clock.wait(1)
            await store.put(WEB, b"one")
            assert len(await watch.next_batch()) == 1

    clock = VirtualClock()
    run(scenario(clock), clock)
