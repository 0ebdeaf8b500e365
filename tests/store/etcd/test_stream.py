"""A stream tells everything that changes from a revision on, or why it cannot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from mooring.store.etcd.errors import EtcdCompacted, EtcdUnreachable
from mooring.store.etcd.settings import parse_address
from mooring.store.etcd.wire import EventStream, Wire
from mooring.store.interface import StoreChange
from tests.store.contract import WEB, told
from tests.store.etcd.builders import Etcd


def play(etcd: Etcd, scenario: Callable[[Wire], Awaitable[None]]) -> None:
    async def started() -> None:
        wire = Wire(etcd.endpoint, parse_address(etcd.url), 2.0)
        try:
            await scenario(wire)
        finally:
            await wire.close()

    run_real(started())


async def read(stream: EventStream, count: int) -> list[StoreChange]:
    changes: list[StoreChange] = []
    while len(changes) < count:
        changes += await stream.next_changes()
    return changes


@pytest.mark.parametrize("has_previous", [True, False])
def test_changes_come_with_what_was_there_before_if_that_is_wanted(etcd: Etcd, has_previous: bool) -> None:
    async def scenario(wire: Wire) -> None:
        first = await wire.put(WEB, b"one", None)
        await wire.put(WEB, b"", None)
        last = await wire.delete(WEB, None)
        async with wire.stream(first, has_previous=has_previous) as stream:
            changes = await read(stream, 3)
        before = [None, b"one", b""] if has_previous else [None, None, None]
        assert told(changes) == [(WEB, b"one", before[0]), (WEB, b"", before[1]), (WEB, None, before[2])]
        assert [change.revision for change in changes] == [first, first + 1, last]

    play(etcd, scenario)


def test_a_stream_from_a_compacted_revision_says_how_far_it_is_compacted(etcd: Etcd) -> None:
    async def scenario(wire: Wire) -> None:
        await wire.put(WEB, b"one", None)
        last = await wire.put(WEB, b"two", None)
        await wire.compact(last)
        async with wire.stream(last - 1) as stream:
            with pytest.raises(EtcdCompacted) as compacted:
                await read(stream, 1)
        assert compacted.value.compacted == last

    play(etcd, scenario)


def test_a_stream_that_is_broken_off_tells_its_reader_and_does_not_cancel_it(etcd: Etcd) -> None:
    async def scenario(wire: Wire) -> None:
        async with wire.stream(await wire.revision() + 1) as stream:
            await stream.next_changes()

            async def wait() -> None:
                with pytest.raises(EtcdUnreachable, match="broken off"):
                    await stream.next_changes()

            async with TaskGroup("reading") as group:
                group.start(wait(), name="reader")
                stream.cancel()

    play(etcd, scenario)
