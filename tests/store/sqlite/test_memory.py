"""Memory says which rows the file may drop, and forgets what is too many, too much or too old."""

from __future__ import annotations

import pytest

from mooring.store.interface import Record, StoreChange
from mooring.store.sqlite.limits import SqliteLimits
from mooring.store.sqlite.memory import DurableMemory
from tests.store.contract import DNS, WEB


def told_memory(limits: SqliteLimits | None = None) -> DurableMemory:
    """Revision 2 puts, 3 replaces and 4 deletes a record, and 5 puts another: a second after the other."""
    memory = DurableMemory(limits or SqliteLimits())
    first, second = Record(WEB, b"one", 2), Record(WEB, b"two", 3)
    memory.load([], 1, [], 0.0)
    memory.apply([StoreChange(WEB, 2, b"one", None)], 1.0)
    memory.apply([StoreChange(WEB, 3, b"two", first)], 2.0)
    memory.apply([StoreChange(WEB, 4, None, second)], 3.0)
    memory.apply([StoreChange(DNS, 5, b"dns", None)], 4.0)
    return memory


@pytest.mark.parametrize(
    ("forgotten", "obsolete"),
    [
        pytest.param(1, [], id="nothing is forgotten"),
        pytest.param(2, [], id="what put the first record"),
        pytest.param(3, [2], id="what replaced it: the first row"),
        pytest.param(4, [2, 3, 4], id="what deleted it: the second row, and the deletion"),
        pytest.param(5, [2, 3, 4], id="what put another one, which stays"),
    ],
)
def test_a_row_is_obsolete_when_what_replaced_it_is_forgotten(forgotten: int, obsolete: list[int]) -> None:
    memory = told_memory()
    memory.forget_before(forgotten)
    assert memory.obsolete == obsolete
    assert memory.oldest_revision() == forgotten


@pytest.mark.parametrize(
    ("now_s", "oldest", "next_s"),
    [
        pytest.param(10.9, 1, 11.0, id="nothing is ten seconds old"),
        pytest.param(11.0, 2, 12.0, id="the first change is"),
        pytest.param(13.5, 4, 14.0, id="three are"),
        pytest.param(99.0, 5, None, id="all are"),
    ],
)
def test_what_is_too_old_is_forgotten(now_s: float, oldest: int, next_s: float | None) -> None:
    memory = told_memory(SqliteLimits(history_s_max=10.0))
    memory.forget_expired(now_s)
    assert (memory.oldest_revision(), memory.next_expiry_s()) == (oldest, next_s)


def test_changes_that_come_close_together_expire_together() -> None:
    memory = DurableMemory(SqliteLimits(history_s_max=10.0))
    memory.load([], 1, [], 0.0)
    for revision in range(2, 12):
        memory.apply([StoreChange(f"/a/{revision}", revision, b"", None)], 1.0 + revision / 20)
    assert memory.next_expiry_s() == pytest.approx(11.55)
    memory.forget_expired(11.56)
    assert memory.oldest_revision() == 11


def test_a_revision_that_does_not_follow_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="revision 7 after 5"):
        told_memory().apply([StoreChange(DNS, 7, b"dns", None)], 5.0)
