"""The bounded memory."""

from __future__ import annotations

from mooring.api.memory import Memory


def test_it_answers_what_it_was_told() -> None:
    memory: Memory[str, int] = Memory(2)
    assert memory.get("one") is None
    assert memory.put("one", 1) == 1
    assert memory.get("one") == 1


def test_a_full_memory_starts_anew() -> None:
    memory: Memory[int, int] = Memory(3)
    for number in range(4):
        memory.put(number, number)
    assert dict(memory) == {3: 3}
