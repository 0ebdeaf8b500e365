"""Tables whose entries refer to each other in circles: other threads see complete entries only."""

from __future__ import annotations

import threading

import pytest

from mooring.api.schema.circular import CircularTable
from tests.waiting import LIMIT_S

REFERENCES = {"a": ("b", "c"), "b": ("a",), "c": ()}
Entry = list["Entry"]


class Circles:
    def __init__(self) -> None:
        self.table: CircularTable[str, Entry] = CircularTable()
        self.is_filling = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.made: list[str] = []

    def entry(self, name: str) -> Entry:
        found = self.table.get(name)
        return found if found is not None else self._made(name)

    def _made(self, name: str) -> Entry:
        with self.table.filling() as entries:
            if name not in entries:
                self.made.append(name)
                entry = entries[name] = []
                self.is_filling.set()
                assert self.may_go_on.wait(LIMIT_S)
                for each in REFERENCES[name]:
                    entry.append(self.entry(each))
            return entries[name]


def test_entries_refer_to_each_other() -> None:
    circles = Circles()
    first = circles.entry("a")
    assert first[0][0] is first
    assert circles.entry("b") is first[0]
    assert circles.made == ["a", "b", "c"]


def test_another_thread_sees_an_entry_when_it_is_complete() -> None:
    circles, seen = Circles(), []
    circles.may_go_on.clear()
    filling = threading.Thread(target=lambda: circles.entry("a"))
    filling.start()
    assert circles.is_filling.wait(LIMIT_S)
    assert circles.table.get("a") is None
    reading = threading.Thread(target=lambda: seen.append(len(circles.entry("a"))))
    reading.start()
    circles.may_go_on.set()
    filling.join(LIMIT_S)
    reading.join(LIMIT_S)
    assert (seen, circles.made) == ([2], ["a", "b", "c"])


def test_an_entry_that_could_not_be_filled_is_made_again() -> None:
    circles = Circles()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REFERENCES, "b", ("missing",))
        with pytest.raises(KeyError, match="missing"):
            circles.entry("a")
    assert circles.table.get("a") is None
    assert len(circles.entry("a")) == 2
