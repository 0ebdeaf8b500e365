"""The SQLite store equals a simple model that keeps all states, for any sequence of operations, restarts and kills."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import VirtualLoop
from mooring.store.interface import Record, RevisionGone, StoreChange, WriteConflict
from mooring.store.sqlite.errors import SqliteLimits
from mooring.store.sqlite.store import SqliteStore
from tests.store.sqlite.builders import crash_image

Result = TypeVar("Result")

KEYS = st.sampled_from(["/a/x", "/a/y", "/a/b/x", "/c/x", "/c/z"])
FOLDERS = st.sampled_from(["/", "/a/", "/c/"])


class SqliteMachine(RuleBasedStateMachine):
    @initialize(changes_max=st.integers(2, 12), obsolete_rows_max=st.integers(1, 4))
    def begin(self, changes_max: int, obsolete_rows_max: int) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.directory = self.root / "0"
        self.runs = 0
        self.clock = VirtualClock()
        self.loop = VirtualLoop(self.clock)
        self.limits = SqliteLimits(
            changes_max=changes_max, obsolete_rows_max=obsolete_rows_max, log_bytes_max=20_000, free_bytes_kept=8192
        )
        self.states: list[dict[str, Record]] = [{}, {}]  # by revision: 0 does not exist, 1 is empty
        self.changes: list[StoreChange] = []
        self.store = self.do(SqliteStore.open(self.directory, self.clock, self.limits))

    def do(self, work: Coroutine[object, object, Result]) -> Result:
        return self.loop.run_until_complete(work)

    @property
    def now(self) -> dict[str, Record]:
        return self.states[-1]

    @rule(key=KEYS, value=st.binary(max_size=3), times=st.sampled_from([1, 1, 3000]))
    def put(self, key: str, value: bytes, times: int) -> None:
        self._expect(key, value * times, self.do(self.store.put(key, value * times)))

    @rule(key=KEYS, revision=st.integers(0, 12))
    def put_if(self, key: str, revision: int) -> None:
        have = self.now[key].revision if key in self.now else 0
        if have == revision:
            self._expect(key, b"if", self.do(self.store.put(key, b"if", if_revision=revision)))
        else:
            with pytest.raises(WriteConflict) as conflict:
                self.do(self.store.put(key, b"if", if_revision=revision))
            assert conflict.value.current == self.now.get(key)

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        if key in self.now:
            self._expect(key, None, self.do(self.store.delete(key)))
        else:
            with pytest.raises(WriteConflict):
                self.do(self.store.delete(key))

    @rule(back=st.integers(0, 4))
    def compact(self, back: int) -> None:
        self.do(self.store.compact(max(1, len(self.states) - 1 - back)))

    @rule()
    def close_and_open(self) -> None:
        self.do(self.store.close())
        self.store = self.do(SqliteStore.open(self.directory, self.clock, self.limits))

    @rule()
    def kill_and_open(self) -> None:
        self.runs += 1
        after = crash_image(self.directory, self.root / str(self.runs))
        self.do(self.store.close())
        self.directory = after
        self.store = self.do(SqliteStore.open(self.directory, self.clock, self.limits))

    @rule(folder=FOLDERS, back=st.integers(0, 6))
    def read_the_past(self, folder: str, back: int) -> None:
        at = max(1, len(self.states) - 1 - back)
        if at < self.store.statistics()["revision_oldest"]:
            with pytest.raises(RevisionGone):
                self.do(self.store.list(folder, at=at))
            return
        state = self.states[at]
        page = self.do(self.store.list(folder, at=at))
        assert [*page.records] == [state[key] for key in sorted(state) if key.startswith(folder)]
        missed = [each for each in self.changes if each.revision > at and each.key.startswith(folder)]
        assert self.do(self._watch(folder, at)) == missed

    async def _watch(self, folder: str, since: int) -> list[StoreChange]:
        async with self.store.watch(folder, since=since) as watch:
            watch.interrupt()
            return [*await watch.next_batch()]

    @invariant()
    def the_present_is_right(self) -> None:
        if hasattr(self, "store"):
            assert self.do(self.store.revision()) == len(self.states) - 1
            assert {each.key: each for each in self.do(self.store.list("/")).records} == self.now

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.do(self.store.close())
            assert self.loop.wind_up() == []
            shutil.rmtree(self.root)

    def _expect(self, key: str, value: bytes | None, revision: int) -> None:
        self.changes.append(StoreChange(key, revision, value, self.now.get(key)))
        state = {name: record for name, record in self.now.items() if name != key}
        if value is not None:
            state[key] = Record(key, value, revision)
        self.states.append(state)


TestSqliteMachine = SqliteMachine.TestCase
TestSqliteMachine.settings = settings(max_examples=30, stateful_step_count=30)
