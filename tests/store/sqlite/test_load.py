"""Loading: damaged files are detected and not changed; a log truncated by a crash is not damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.store.sqlite.errors import DirectoryUnusable, FileDamaged, FileError, SqliteLimits
from mooring.store.sqlite.store import SqliteStore
from tests.store.contract import DNS, NODE, PODS, WEB
from tests.store.sqlite.builders import ACKNOWLEDGED, DATABASE, LOG, contents_of, crash_image, play

VALUE = b"a value that can be found in the file"
LAST_REVISION = 12

Damage = Callable[[Path], object]


async def write(store: SqliteStore) -> None:
    """Write a history that is compacted and in the file, and records that are in the log."""
    for key in (WEB, DNS, WEB, NODE):
        await store.put(key, VALUE)
    await store.delete(DNS)
    await store.compact(5)
    for number in range(6):
        await store.put(f"{PODS}default/p{number}", b"%d" % number * 3000)


def closed_store(directory: Path) -> Path:
    play(directory, write)
    return directory


def killed_store(directory: Path) -> Path:
    async def write_and_die(store: SqliteStore) -> None:
        await write(store)
        crash_image(directory / "alive", directory / "killed")

    play(directory / "alive", write_and_die)
    return directory / "killed"


def cut(name: str, keep: float) -> Damage:
    def damage(directory: Path) -> None:
        data = (directory / name).read_bytes()
        (directory / name).write_bytes(data[: int(len(data) * keep)])

    return damage


def flip(name: str, at: int | bytes) -> Damage:
    def damage(directory: Path) -> None:
        data = bytearray((directory / name).read_bytes())
        data[data.index(at) if isinstance(at, bytes) else at % len(data)] ^= 0x10
        (directory / name).write_bytes(data)

    return damage


def append(name: str, tail: bytes) -> Damage:
    return lambda directory: (directory / name).write_bytes((directory / name).read_bytes() + tail)


def remove(name: str) -> Damage:
    return lambda directory: (directory / name).unlink()


def run_sql(*statements: str) -> Damage:
    def damage(directory: Path) -> None:
        with closing(sqlite3.connect(directory / DATABASE, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    return damage


@pytest.mark.parametrize(
    ("store", "damage", "found"),
    [
        pytest.param(closed_store, cut(DATABASE, 0), "it is empty", id="the file is empty"),
        pytest.param(closed_store, cut(DATABASE, 0.5), "malformed|missing", id="the file is truncated"),
        pytest.param(closed_store, remove(DATABASE), "revision 12 was acknowledged", id="the file is missing"),
        pytest.param(closed_store, flip(DATABASE, 0), "not a database", id="an invalid header"),
        pytest.param(closed_store, flip(DATABASE, VALUE), "checksum of revision", id="a bit of an old value"),
        pytest.param(closed_store, flip(DATABASE, b"333"), "checksum of revision 10 ", id="a bit of a new value"),
        pytest.param(
            closed_store, flip(DATABASE, WEB.encode()), "checksum of revision 4 is wrong", id="a bit of a key"
        ),
        pytest.param(
            closed_store,
            run_sql("DELETE FROM changes WHERE revision = 4"),
            "up to revision 5 there should be 3 rows, and there are 2",
            id="an old row is missing",
        ),
        pytest.param(
            closed_store,
            run_sql("DELETE FROM changes WHERE revision = 8"),
            "revision 8 is missing",
            id="a row of the history is missing",
        ),
        pytest.param(
            closed_store,
            run_sql("DELETE FROM changes WHERE revision = 12"),
            "ends with revision 11, but revision 12 was acknowledged",
            id="the last row is missing",
        ),
        pytest.param(
            closed_store,
            run_sql("UPDATE state SET oldest = 6"),
            "its oldest revision is wrong",
            id="the oldest revision is wrong",
        ),
        pytest.param(killed_store, remove(LOG), "but revision 12 was acknowledged", id="the log is missing"),
        pytest.param(killed_store, cut(LOG, 0.6), "but revision 12 was acknowledged", id="the log is truncated"),
        pytest.param(killed_store, flip(LOG, b"333"), "but revision 12 was acknowledged", id="a bit of the log"),
        pytest.param(
            killed_store,
            lambda directory: [remove(name)(directory) for name in (DATABASE, ACKNOWLEDGED)],
            "it is missing, but its log",
            id="only the log exists",
        ),
    ],
)
def test_damage_is_detected_and_the_files_are_not_changed(
    store: Callable[[Path], Path], damage: Damage, found: str, tmp_path: Path
) -> None:
    directory = store(tmp_path)
    damage(directory)
    before = nonempty_files(directory)
    for _ in range(2):  # the second start detects the same damage
        with pytest.raises(FileDamaged, match=rf"(?s)store\.db is damaged: .*({found}).*Restore .* from a backup"):
            contents_of(directory)
    assert nonempty_files(directory) == before


def nonempty_files(directory: Path) -> dict[str, bytes]:
    files = [directory / name for name in (DATABASE, LOG)]
    # An empty log is equal to a missing log.
    return {file.name: data for file in files if file.exists() and (data := file.read_bytes())}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda directory: None, id="unchanged"),
        pytest.param(append(LOG, b"half a frame" * 100), id="an incomplete commit"),
        pytest.param(remove(ACKNOWLEDGED), id="the acknowledged revision is missing"),
        pytest.param(remove("lock"), id="the lock is missing"),
    ],
)
def test_a_killed_store_recovers_without_intervention(damage: Damage, tmp_path: Path) -> None:
    directory = killed_store(tmp_path)
    damage(directory)
    revision, records = contents_of(directory)
    assert revision == LAST_REVISION
    assert (records, revision) == (contents_of(tmp_path / "alive")[1], LAST_REVISION)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(
            run_sql("PRAGMA application_id = 7"), "another program's database", id="a file of another program"
        ),
        pytest.param(run_sql("PRAGMA user_version = 2"), "use the version that wrote it", id="a later format"),
    ],
)
def test_a_file_of_another_program_or_version_is_rejected(damage: Damage, message: str, tmp_path: Path) -> None:
    directory = closed_store(tmp_path)
    damage(directory)
    with pytest.raises(DirectoryUnusable, match=message):
        contents_of(directory)


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("undamaged")
    return {DATABASE: closed_store(root / "closed"), LOG: killed_store(root)}


@settings(max_examples=80)
@given(name=st.sampled_from([DATABASE, LOG]), at=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_a_flipped_bit_is_detected_or_has_no_effect(
    name: str, at: int, bit: int, undamaged: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = crash_image(undamaged[name], tmp_path_factory.mktemp("harmed") / "data")
    data = bytearray((directory / name).read_bytes())
    data[at % len(data)] ^= 1 << bit
    (directory / name).write_bytes(data)
    try:
        found = contents_of(directory)
    except FileError:
        return
    assert found == contents_of(crash_image(undamaged[name], directory.parent / "undamaged"))


def test_obsolete_rows_left_by_a_crash_are_removed_later(tmp_path: Path) -> None:
    """Memory removes history immediately, the file only at maintenance: until then rows are obsolete, not records."""

    async def forget(store: SqliteStore) -> None:
        for _ in range(20):
            await store.put(WEB, VALUE)
        assert store.statistics()["obsolete_rows"] == 17
        crash_image(tmp_path / "data", tmp_path / "killed")

    async def look(store: SqliteStore) -> None:
        assert store.statistics()["obsolete_rows"] == 17
        await store.compact(await store.revision())
        assert store.statistics()["obsolete_rows"] == 0
        assert [record.revision for record in (await store.list("/")).records] == [21]

    limits = SqliteLimits(changes_max=2)
    play(tmp_path / "data", forget, limits)
    play(tmp_path / "killed", look, limits)
    assert contents_of(tmp_path / "killed") == (21, {WEB: (21, VALUE)})
