"""A memory with a limit: for answers that are asked for again and again.

Comes in   a question (any hashable value) and its answer
Goes out   the answer, next time; of `Marks`, whether the question came before

 1. When the memory is full it starts anew. That is cheaper than knowing what was used last, and it happens only to
    those whose questions do not repeat, whom no order of forgetting would help.
 2. Answers are shared by all who ask: nobody may change one.
 3. Where keeping an answer is dear, a question that comes for the first time is only marked: most never come again.
    Two questions may share a mark, and then one of them is kept too soon; nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Memory(dict[Question, Answer]):
    """Ask with `get`; when it does not know, work it out and `keep` it."""

    __slots__ = ("size_max",)

    def __init__(self, size_max: int) -> None:
        super().__init__()
        self.size_max = size_max

    def keep(self, question: Question, answer: Answer) -> Answer:
        if len(self) >= self.size_max:
            self.clear()
        self[question] = answer
        return answer


class Marks:
    """Of questions that came before: only that they came."""

    __slots__ = ("_marks",)

    def __init__(self, size_max: int) -> None:
        self._marks: Memory[int, None] = Memory(size_max)

    def is_new(self, question: Hashable) -> bool:
        """Whether it comes for the first time. The next time it does not."""
        mark = hash(question)
        if mark in self._marks:
            return False
        self._marks.keep(mark, None)
        return True
