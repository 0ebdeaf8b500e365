"""The standstill: while extenders are asked, what happens in the cluster waits.

Comes in   actions that change the columns (what `intake` does for an event, an assumption that is taken back)
Goes out   the same actions, at once, or in order when the decision that holds them has ended

A cycle reads the live columns and nothing is copied for it, which is right as long as it does not wait. A decision with
extenders waits between its steps, and what it found out about rows must still hold afterwards. So for that time
changes are put off: the decision sees the cluster as it was when it began, as kube-scheduler's sees its snapshot.

 1. Actions run in the order in which they came, whether they had to wait or not.
 2. An action that fails does not keep those behind it from running; the first error is raised in the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Action = Callable[[], None]


class Standstill:
    """Runs actions, unless somebody needs everything to stand still."""

    def __init__(self) -> None:
        self._waiting: deque[Action] = deque()
        self._is_held = False

    @property
    def is_held(self) -> bool:
        return self._is_held

    @property
    def is_quiet(self) -> bool:
        """Whether an action would run at once."""
        return not self._is_held and not self._waiting

    @property
    def waiting(self) -> int:
        """How many actions wait: a decision that takes long lets this grow."""
        return len(self._waiting)

    def run(self, action: Action) -> None:
        """Runs an action now, or as soon as nobody minds."""
        if self.is_quiet:
            action()
        else:
            self._waiting.append(action)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nothing runs inside of this block."""
        assert not self._is_held, "one decision at a time: another one holds everything already"
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self._run_waiting()

    def _run_waiting(self) -> None:
        error: Exception | None = None
        while self._waiting:
            try:
                self._waiting[0]()
            except Exception as raised:
                error = error or raised
            self._waiting.popleft()  # only now, so that an action that brings another one keeps the order
        if error is not None:
            raise error
