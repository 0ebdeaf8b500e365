"""The workers of a work queue: take a key, reconcile it, and act on the outcome.

Input: a work queue, and a function that reconciles one key. Output: tasks in a group, which end when the queue is shut
down and empty.

1. There are three outcomes: `DONE`; `Later`, reconcile again after a delay; `Failed`, retry with a backoff.
2. An exception is logged with its key and retried as a failure. It never ends a worker.
3. Every key is returned to the queue, or it would never be reconciled again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from mooring.client.workqueue import Key, WorkQueue
from mooring.kit.tasks import TaskGroup

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Done:
    """Reconciled until the next change."""


@dataclass(frozen=True, slots=True)
class Later:
    """Reconciled, but due again after a delay."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Failed:
    """Failed for an expected reason; retry."""

    reason: str
    log_level: int = logging.INFO
    """DEBUG for failures that are normal under load, such as conflicts."""


DONE: Final = Done()

Outcome: TypeAlias = Done | Later | Failed


def run_workers(
    queue: WorkQueue[Key], reconcile: Callable[[Key], Awaitable[Outcome]], *, workers: int, group: TaskGroup
) -> None:
    """Start workers in the group."""
    assert workers > 0, f"queue {queue.name!r} with {workers} workers would never be emptied"
    for number in range(workers):
        group.start(_work(queue, reconcile), name=f"{queue.name} worker {number}")


async def _work(queue: WorkQueue[Key], reconcile: Callable[[Key], Awaitable[Outcome]]) -> None:
    while (key := await queue.get()) is not None:
        try:
            _conclude(queue, key, await reconcile(key))
        except Exception:
            logger.exception("%s: %s could not be reconciled; trying again", queue.name, key)
            queue.add_rate_limited(key)
        finally:
            queue.done(key)


def _conclude(queue: WorkQueue[Key], key: Key, outcome: Outcome) -> None:
    match outcome:
        case Done():
            queue.forget(key)
        case Later(after_s):
            queue.forget(key)
            queue.add_after(key, after_s)
        case Failed(reason, log_level):
            logger.log(log_level, "%s: %s is tried again: %s", queue.name, key, reason)
            queue.add_rate_limited(key)
        case never:
            assert_never(never)
