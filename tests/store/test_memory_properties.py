"""The memory store equals a simple model that keeps all states, for any sequence of operations."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mooring.store.interface import Record, RevisionGone, StoreChange, WriteConflict
from mooring.store.memory import MemoryStore, MemoryWatch

Result = TypeVar("Result")

KEYS = st.sampled_from(["/a/x", "/a/y", "/a/b/x", "/a/b/y", "/a/b", "/c/x", "/c/z"])
FOLDERS = st.sampled_from(["/", "/a/", "/a/b/", "/c/", "/none/"])
VALUES = st.binary(max_size=4)


def step(work: Coroutine[object, object, Result]) -> Result:
    """Run a coroutine that must not wait."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise AssertionError("the memory store must not wait")


class StoreMachine(RuleBasedStateMachine):
    @initialize(changes_max=st.integers(2, 12), buffer_max=st.integers(1, 6))
    def begin(self, changes_max: int, buffer_max: int) -> None:
        self.store = MemoryStore(changes_max=changes_max, buffer_max=buffer_max)
        self.states: list[dict[str, Record]] = [{}, {}]  # by revision: 0 does not exist, 1 is empty
        self.changes: list[StoreChange] = []
        self.watches: list[tuple[MemoryWatch, str, int]] = []

    @property
    def now(self) -> dict[str, Record]:
        return self.states[-1]

    @rule(key=KEYS, value=VALUES)
    def put(self, key: str, value: bytes) -> None:
        self._expect(key, value, step(self.store.put(key, value)))

    @rule(key=KEYS, value=VALUES, revision=st.integers(0, 30))
    def put_if(self, key: str, value: bytes, revision: int) -> None:
        have = self.now[key].revision if key in self.now else 0
        if have == revision:
            self._expect(key, value, step(self.store.put(key, value, if_revision=revision)))
        else:
            with pytest.raises(WriteConflict) as conflict:
                step(self.store.put(key, value, if_revision=revision))
            assert conflict.value.current == self.now.get(key)

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        if key in self.now:
            self._expect(key, None, step(self.store.delete(key)))
        else:
            with pytest.raises(WriteConflict):
                step(self.store.delete(key))

    @rule(folder=FOLDERS, back=st.integers(0, 6), start=st.one_of(st.just(""), KEYS), limit=st.integers(0, 4))
    def list(self, folder: str, back: int, start: str, limit: int) -> None:
        at = max(1, len(self.states) - 1 - back)
        if at < self.store.oldest_revision():
            with pytest.raises(RevisionGone):
                step(self.store.list(folder, start=start, limit=limit, at=at))
            return
        page = step(self.store.list(folder, start=start, limit=limit, at=at))
        state = self.states[at]
        wanted = [state[key] for key in sorted(state) if key.startswith(folder) and key >= start]
        assert [*page.records] == (wanted[:limit] if limit else wanted)
        rest = wanted[limit:] if limit else []
        assert (page.next_start, page.remaining) == (rest[0].key if rest else "", len(rest))

    @rule(folder=FOLDERS, back=st.integers(0, 6))
    def watch(self, folder: str, back: int) -> None:
        since = max(1, len(self.states) - 1 - back)
        watch = self.store.watch(folder, since=since)
        if since < self.store.oldest_revision():
            with pytest.raises(RevisionGone):
                step(watch.__aenter__())
        else:
            step(watch.__aenter__())
            self.watches.append((watch, folder, since))

    @rule()
    def read_watches(self) -> None:
        open_watches = []
        for watch, folder, since in self.watches:
            wanted = [each for each in self.changes if each.revision > since and each.key.startswith(folder)]
            watch.interrupt()
            try:
                found = step(watch.next_batch())
            except RevisionGone:
                assert wanted, "the watch ended without missed changes"
                continue
            assert [(each.key, each.revision, each.value, each.previous) for each in found] == [
                (each.key, each.revision, each.value, each.previous) for each in wanted
            ]
            open_watches.append((watch, folder, len(self.states) - 1))
        self.watches = open_watches

    @rule(back=st.integers(0, 4))
    def compact(self, back: int) -> None:
        step(self.store.compact(max(1, len(self.states) - 1 - back)))

    @invariant()
    def the_present_is_right(self) -> None:
        if hasattr(self, "store"):
            assert step(self.store.revision()) == len(self.states) - 1
            assert {each.key: each for each in step(self.store.list("/")).records} == self.now

    def _expect(self, key: str, value: bytes | None, revision: int) -> None:
        self.changes.append(StoreChange(key, revision, value, self.now.get(key)))
        state = {name: record for name, record in self.now.items() if name != key}
        if value is not None:
            state[key] = Record(key, value, revision)
        self.states.append(state)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=60, stateful_step_count=40)
