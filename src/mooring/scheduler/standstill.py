"""The standstill: changes of the columns wait while a decision waits for extenders.

A cycle reads the live columns without a copy, which is correct as long as it does not await. A decision with
extenders awaits between its steps, and its results about rows must still hold afterwards. Changes that arrive
meanwhile are queued: the decision sees the cluster as it was at its start, as kube-scheduler's decision sees its
snapshot.

1. Actions run in the order in which they were submitted.
2. An action that raises does not keep the next ones from running. The first error is raised at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Action = Callable[[], None]


class Standstill:
    """Runs actions at once, or queues them while a decision holds the standstill."""

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
        """The number of queued actions."""
        return len(self._waiting)

    def run(self, action: Action) -> None:
        """Run an action now, or when the standstill ends."""
        if self.is_quiet:
            action()
        else:
            self._waiting.append(action)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No action runs while this context is active."""
        assert not self._is_held, "another decision already holds the standstill"
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
            self._waiting.popleft()  # only now, so that an action submitted by this one runs after the others
        if error is not None:
            raise error
