"""A memory with a limit: for answers that are asked for again and again.

Comes in   a question (any hashable value) and its answer
Goes out   the answer, next time

 1. When the memory is full it starts anew. That is cheaper than knowing what was used last, and it happens only to
    those whose questions do not repeat, whom no order of forgetting would help.
 2. Answers are shared by all who ask: nobody may change one.
"""

from __future__ import annotations

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
