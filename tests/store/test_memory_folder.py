"""A folder keeps its keys in order, whether a few or many came and went since somebody looked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.store.interface import Record
from mooring.store.memory import Folder

NAMES = st.text("abc", min_size=1, max_size=3)


def put(folder: Folder, key: str) -> None:
    folder.put(Record(key, b"", 2), is_new=key not in folder.records)


@pytest.mark.parametrize("count", [pytest.param(3, id="a few at a time"), pytest.param(100, id="many at a time")])
def test_keys_are_in_order_after_any_number_of_changes(count: int) -> None:
    folder = Folder("/f/")
    for number in reversed(range(count)):
        put(folder, f"/f/{number:03}")
    assert list(folder.keys_from("")) == [f"/f/{number:03}" for number in range(count)]
    for number in range(0, count, 2):
        folder.remove(f"/f/{number:03}")
    assert list(folder.keys_from("")) == [f"/f/{number:03}" for number in range(1, count, 2)]


@given(st.lists(st.tuples(st.sampled_from(["put", "remove", "look"]), NAMES), max_size=60), NAMES)
def test_a_folder_is_a_sorted_dictionary(steps: list[tuple[str, str]], start: str) -> None:
    folder, expected = Folder(""), dict[str, None]()
    for step, key in steps:
        if step == "put":
            put(folder, key)
            expected[key] = None
        elif step == "remove" and key in expected:
            folder.remove(key)
            del expected[key]
        elif step == "look":
            assert list(folder.keys_from("")) == sorted(expected)
    assert [record.key for record in folder.in_order()] == sorted(expected)
    assert list(folder.keys_from(start)) == [key for key in sorted(expected) if key >= start]
    assert folder.count_from(start) == sum(key >= start for key in expected)
