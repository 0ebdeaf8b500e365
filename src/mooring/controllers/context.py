"""The frame: what every controller is given, and what it has to be.

Comes in   a client, time, chance, settings
Goes out   to each controller a `ControllerContext`; to the manager a `Controller` that can be started

A controller asks for informers and registers handlers when it is made; then the informers are started and filled; then
`start` is called. Handlers only put keys into a queue. Workers take a key, look at what the listers hold, and bring the
world closer to what is wanted.

 1. A handler never waits, so what it sees in a lister is never older than what it was told.
 2. A key is with one worker at a time, however many there are.
 3. After each key everybody else gets a turn: on a client that never suspends one controller would starve the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from mooring.api.views.pod import Pod
from mooring.client.cache.informer import SharedInformers
from mooring.client.events.formats import CoreFormat
from mooring.client.events.recorder import EventRecorder
from mooring.client.events.writer import EventWriter
from mooring.client.interface import Client
from mooring.client.workers import DONE, Done, Failed, Later, Outcome, run_workers
from mooring.client.workqueue import WorkQueue
from mooring.controllers.pod_indexes import PodCountIndex
from mooring.controllers.settings import ControllerSettings
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

__all__ = ["DONE", "Controller", "ControllerContext", "Done", "Failed", "Later", "Outcome"]


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What the controllers of one process share."""

    client: Client
    clock: Clock
    entropy: Entropy
    settings: ControllerSettings = field(default_factory=ControllerSettings)
    root_ca_pem: str = ""
    """The authority that signs the certificate of the API server."""
    informers: SharedInformers = field(init=False)
    events: EventWriter = field(init=False)
    _tallies: list[PodCountIndex] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        informers = SharedInformers(self.client, self.clock, self.entropy.fork("informers"))
        object.__setattr__(self, "informers", informers)
        events = EventWriter(self.client, self.clock, self.entropy.fork("events"), CoreFormat())
        object.__setattr__(self, "events", events)

    def recorder(self, component: str) -> EventRecorder:
        """The voice of a controller in events, such as `deployment-controller`."""
        return self.events.recorder(component)

    def pod_counts(self) -> PodCountIndex:
        """Pods counted by owner; one counts_by_labels for all who count."""
        if self._tallies:
            return self._tallies[0]
        self._tallies.append(PodCountIndex(self.informers.informer(Pod)))
        return self._tallies[0]

    def queue(self, name: str) -> WorkQueue[str]:
        """A queue of keys (`namespace/name`)."""
        return WorkQueue(name, self.clock, self.entropy.fork(f"queue of {name}"))


class Controller(ABC):
    """One controller. Those that work by the clock rather than by keys override `start` and `stop`."""

    name: ClassVar[str]
    """As kube-controller-manager calls it: `replicaset-controller`."""

    workers: int = 1

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.client = context.client
        self.clock = context.clock
        self.queue = context.queue(self.name)

    @abstractmethod
    async def sync(self, key: str) -> Outcome:
        """Look at one object, and do the next thing about it."""

    def start(self, group: TaskGroup) -> None:
        """Begin to work, in tasks of the group. The informers are full."""
        run_workers(self.queue, self._reconcile, workers=self.workers, group=group)

    def stop(self) -> None:
        """Take no more work; tasks that were started end when theirs is done."""
        self.queue.shut_down()

    async def _reconcile(self, key: str) -> Outcome:
        outcome = await self.sync(key)
        await self.clock.wait(0)
        return outcome


def split_key(key: str) -> tuple[str, str]:
    """Namespace and name; the namespace of a cluster's object is empty."""
    namespace, slash, name = key.rpartition("/")
    return (namespace, name) if slash else ("", key)
