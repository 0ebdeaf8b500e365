"""The store on disk implements the interface, on a thread and on virtual time, and comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.store.interface import RevisionGone, Store, StoreClosed
from mooring.store.sqlite.limits import SqliteLimits
from mooring.store.sqlite.store import SqliteStore
from tests.store.contract import DATABASE, DNS, NODE, PODS, WEB, Play, Scenario, StoreContract, fill, gather, told
from tests.store.sqlite.builders import contents, crash_image, play, play_real


class TestTheContractOnVirtualTime(StoreContract):
    @pytest.fixture
    def play(self, tmp_path: Path) -> Play:
        def played(scenario: Scenario) -> None:
            play(tmp_path / "data", scenario)

        return played


class TestTheContractOnAThread(StoreContract):
    @pytest.fixture
    def play(self, tmp_path: Path) -> Play:
        def played(scenario: Scenario) -> None:
            play_real(tmp_path / "data", scenario)

        return played


class TestTheContractAfterARestart(StoreContract):
    """The same again on a store that has a past: compacted, tended, closed and opened again."""

    @pytest.fixture
    def play(self, tmp_path: Path) -> Play:
        def played(scenario: Scenario) -> None:
            play(tmp_path / "data", _leave_a_past)
            play(tmp_path / "data", scenario)

        return played


async def _leave_a_past(store: Store) -> None:
    await fill(store, WEB, NODE, WEB)
    await store.compact(await store.revision())
    for key in (WEB, NODE):
        await store.delete(key)


@pytest.mark.parametrize("ending", ["it was closed", "it was killed"])
def test_everything_is_there_after(ending: str, tmp_path: Path) -> None:
    left: dict[str, tuple[int, bytes]] = {}

    async def write(store: SqliteStore) -> None:
        await fill(store, WEB, DATABASE, NODE)
        await store.put(WEB, b"changed")
        await store.delete(NODE)
        await store.put(DNS, b"")
        left.update(await contents(store))
        crash_image(tmp_path / "data", tmp_path / "killed")

    async def look(store: SqliteStore) -> None:
        assert await contents(store) == left
        assert await store.revision() == 7
        assert await store.put(NODE, b"next") == 8

    play(tmp_path / "data", write)
    play(tmp_path / ("data" if ending == "it was closed" else "killed"), look)


@pytest.mark.parametrize(
    ("compacted", "since", "changes"),
    [
        pytest.param(1, 1, [(WEB, b"web", None), (WEB, b"two", b"web"), (WEB, None, b"two")], id="from the start"),
        pytest.param(1, 2, [(WEB, b"two", b"web"), (WEB, None, b"two")], id="from the middle"),
        pytest.param(2, 2, [(WEB, b"two", b"web"), (WEB, None, b"two")], id="from the oldest that is left"),
        pytest.param(2, 4, [], id="from the present"),
        pytest.param(3, 2, None, id="from what is compacted"),
        pytest.param(4, 3, None, id="when only the present is left"),
    ],
)
def test_a_watch_that_goes_on_after_a_restart_gets_the_rest_or_is_told_that_it_is_gone(
    compacted: int, since: int, changes: list[tuple[str, bytes | None, bytes | None]] | None, tmp_path: Path
) -> None:
    async def write(store: SqliteStore) -> None:
        await fill(store, WEB)
        await store.put(WEB, b"two")
        await store.delete(WEB)
        await store.compact(compacted)

    async def resume(store: SqliteStore) -> None:
        if changes is None:
            with pytest.raises(RevisionGone):
                async with store.watch(PODS, since=since):
                    pass
            return
        async with store.watch(PODS, since=since) as watch:
            assert told(await gather(watch.next_batch, len(changes))) == changes
            await store.put(DNS, b"later")
            assert told(await gather(watch.next_batch, 1)) == [(DNS, b"later", None)]

    play(tmp_path, write)
    play(tmp_path, resume)


def test_an_old_revision_reads_as_it_was_after_a_restart(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        await fill(store, WEB, DATABASE)
        await store.put(WEB, b"changed")
        await store.delete(DATABASE)

    async def look(store: SqliteStore) -> None:
        page = await store.list(PODS, at=3)
        assert [(each.key, each.value) for each in page.records] == [(DATABASE, b"database"), (WEB, b"web")]

    play(tmp_path, write)
    play(tmp_path, look)


def test_revisions_go_on_when_nothing_is_left_but_their_number(tmp_path: Path) -> None:
    async def write_and_forget(store: SqliteStore) -> None:
        await fill(store, WEB)
        await store.compact(await store.delete(WEB))

    async def look(store: SqliteStore) -> None:
        assert await contents(store) == {}
        assert await store.put(WEB, b"again") == 4

    play(tmp_path, write_and_forget)
    play(tmp_path, look)


def test_the_history_that_comes_back_keeps_to_its_limits(tmp_path: Path) -> None:
    async def write(store: SqliteStore) -> None:
        await fill(store, *[f"{PODS}default/p{number}" for number in range(10)])

    async def look(store: SqliteStore) -> None:
        assert store.statistics()["revision_oldest"] == 8

    play(tmp_path, write)
    play(tmp_path, look, SqliteLimits(changes_max=3))


def test_a_closed_store_takes_no_writes_and_can_be_closed_again(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        await fill(store, WEB)
        await store.close()
        with pytest.raises(StoreClosed):
            await store.put(WEB, b"late")
        with pytest.raises(StoreClosed):
            await store.compact(2)
        record = await store.get(WEB)
        assert record is not None

    play(tmp_path, scenario)
