"""A cache with a limit on its number of entries.

1. A full cache is emptied. That is cheaper than tracking the order of use, and happens only to callers whose keys do
   not repeat.
2. Values are shared between callers: no caller changes one.
"""

from __future__ import annotations

from typing import TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Memory(dict[Question, Answer]):
    """Values by key. If `get` returns None, compute the value and `keep` it."""

    __slots__ = ("size_max",)

    def __init__(self, size_max: int) -> None:
        super().__init__()
        self.size_max = size_max

    def keep(self, question: Question, answer: Answer) -> Answer:
        if len(self) >= self.size_max:
            self.clear()
        self[question] = answer
        return answer
