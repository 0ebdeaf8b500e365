"""The bounded memory."""

from __future__ import annotations

from mooring.api.memory import Marks, Memory


def test_it_answers_what_it_was_told() -> None:
    memory: Memory[str, int] = Memory(2)
    assert memory.get("one") is None
    assert memory.keep("one", 1) == 1
    assert memory.get("one") == 1


def test_a_full_memory_starts_anew() -> None:
    memory: Memory[int, int] = Memory(3)
    for number in range(4):
        memory.keep(number, number)
    assert dict(memory) == {3: 3}


def test_a_question_is_new_once() -> None:
    marks = Marks(2)
    assert [marks.is_new(question) for question in (b"a", b"a", b"b", b"a")] == [True, False, True, False]


def test_full_marks_start_anew() -> None:
    marks = Marks(2)
    assert [marks.is_new(question) for question in (1, 2, 3, 1)] == [True, True, True, True]
    assert not marks.is_new(1)
