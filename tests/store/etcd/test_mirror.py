"""The mirror is what etcd was at its revision, and says when it is at another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.store.etcd.mirror import EtcdMirror
from mooring.store.etcd.settings import EtcdLimits
from mooring.store.interface import Record, RevisionAhead, RevisionGone, StoreChange
from tests.store.contract import DNS, PODS, WEB, told


def play(scenario: Callable[[EtcdMirror], Awaitable[None]]) -> None:
    """On a mirror that was loaded with one pod at revision 10."""

    async def started() -> None:
        mirror = EtcdMirror(EtcdLimits())
        mirror.load([Record(WEB, b"one", 7)], 10)
        await scenario(mirror)

    run(started())


def put(key: str, value: bytes, revision: int) -> StoreChange:
    return StoreChange(key, revision, value, None)


def deleted(key: str, revision: int) -> StoreChange:
    return StoreChange(key, revision, None, None)


def test_it_knows_what_was_there_before_without_being_told() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        async with mirror.watch(PODS, since=10) as watch:
            mirror.apply([put(WEB, b"two", 11), deleted(WEB, 12), put(WEB, b"three", 13)])
            changes = await watch.next_batch()
        assert told(changes) == [(WEB, b"two", b"one"), (WEB, None, b"two"), (WEB, b"three", None)]
        assert await mirror.get(WEB) == Record(WEB, b"three", 13)

    play(scenario)


def test_the_past_is_counted_by_revisions_not_by_changes() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        mirror.apply([put("foreign", b"", 11), put(WEB, b"two", 12), put(DNS, b"new", 12), put("foreign", b"", 20)])
        assert mirror.current_revision() == 20
        for at in (10, 11):
            assert [each.value for each in (await mirror.list(PODS, at=at)).records] == [b"one"]
        for at in (12, 19, 20):
            assert [each.value for each in (await mirror.list(PODS, at=at)).records] == [b"two", b"new"]
        with pytest.raises(RevisionAhead):
            await mirror.list(PODS, at=21)

    play(scenario)


def test_a_key_that_is_not_ours_moves_the_revision_and_wakes_those_who_wait_for_that() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        advanced: list[str] = []
        async with mirror.watch(PODS, since=10) as watch:
            watch.when_advanced(lambda: advanced.append("now"))
            mirror.apply([put("foreign", b"", 11)])
            assert advanced == ["now"]
            assert watch.seen_revision() == 11

    play(scenario)


def test_whoever_waits_for_a_revision_comes_back_when_it_is_reached() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        await mirror.wait_reached(10)
        async with TaskGroup("waiting") as group:
            waiting = group.start(mirror.wait_reached(12), name="twelve")
            mirror.apply([put(WEB, b"two", 11)])
            assert not waiting.done()
            mirror.apply([put(WEB, b"three", 13)])
            await waiting

    play(scenario)


def test_what_somebody_says_to_be_compacted_is_forgotten() -> None:
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


def test_loading_again_cuts_every_watch_off() -> None:
    async def scenario(mirror: EtcdMirror) -> None:
        mirror.apply([put(DNS, b"gone", 11), put("compact_rev_key", b"11", 12)])
        async with mirror.watch(PODS, since=12) as watch:
            mirror.load([Record(WEB, b"another", 3)], 5)
            with pytest.raises(RevisionGone):
                await watch.next_batch()
        assert [each.value for each in (await mirror.list("/")).records] == [b"another"]
        assert (mirror.current_revision(), mirror.compacted_revision()) == (5, 0)

    play(scenario)
