"""The workers of a queue: take a key, have it reconciled, and do what the outcome says.

Comes in   a work queue, and `reconcile`: what a controller does about one key
Goes out   tasks in a group, which end when the queue is shut down and empty

 1. There are three outcomes: `DONE`; `Later`, looked at again after a while; `Failed`, tried again with backoff.
 2. An exception is a failure too: logged with the key, and tried again. It never ends a worker.
 3. Whatever comes back, the key is given back to the queue: a key that is kept would never be looked at again.
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
    """There is nothing more to do until something changes."""


@dataclass(frozen=True, slots=True)
class Later:
    """All is well, but it has to be looked at again."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not work, for an expected reason; try again."""

    reason: str
    log_level: int = logging.INFO
    """DEBUG for failures that are normal under load, such as conflicts."""


DONE: Final = Done()

Outcome: TypeAlias = Done | Later | Failed


def run_workers(
    queue: WorkQueue[Key], reconcile: Callable[[Key], Awaitable[Outcome]], *, workers: int, group: TaskGroup
) -> None:
    """Start that many workers in the group."""
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
