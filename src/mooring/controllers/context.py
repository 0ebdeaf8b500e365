"""What a controller gets (`ControllerContext`) and what it implements (`Controller`).

A controller requests informers and adds handlers when it is constructed. Then the informers start and sync. Then
`start` is called. Handlers only add keys to a queue. Workers take a key, read the listers, and bring the object
closer to its desired state.

1. A handler never awaits, so the listers are never older than the event.
2. A key is processed by one worker at a time.
3. After each key other tasks run: on a client that never suspends, one controller would starve the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.events import CoreFormat, EventRecorder, EventWriter
from mooring.client.informer import AnyObject, Informer, SharedInformers
from mooring.client.interface import Client
from mooring.client.workqueue import DONE, Done, Failed, Later, Outcome, WorkQueue, run_workers
from mooring.controllers.pod_indexes import PodCountIndex, PodGroupIndex
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
    """The CA certificate of the API server."""
    local_volumes: str = ""
    """The directory of the volumes of `local-provisioner-controller`; empty: it provisions none."""
    informers: SharedInformers = field(init=False)
    events: EventWriter = field(init=False)
    _pod_counts: list[PodCountIndex] = field(init=False, default_factory=list)
    _pod_groups: list[PodGroupIndex] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        informers = SharedInformers(self.client, self.clock, self.entropy.fork("informers"))
        object.__setattr__(self, "informers", informers)
        events = EventWriter(self.client, self.clock, self.entropy.fork("events"), CoreFormat())
        object.__setattr__(self, "events", events)

    def recorder(self, component: str) -> EventRecorder:
        """A recorder for events of a component, such as `deployment-controller`."""
        return self.events.recorder(component)

    def pod_counts(self) -> PodCountIndex:
        """The shared index of pod counts by owner. Call it before the controller adds its own handlers."""
        if not self._pod_counts:
            self._pod_counts.append(PodCountIndex(self.informers.informer(Pod)))
        return self._pod_counts[0]

    def pod_groups(self) -> PodGroupIndex:
        """The shared index of pods by namespace, labels and owner. Call it before the controller adds its handlers."""
        if not self._pod_groups:
            self._pod_groups.append(PodGroupIndex(self.informers.informer(Pod)))
        return self._pod_groups[0]

    def queue(self, name: str) -> WorkQueue[str]:
        """A queue of keys (`namespace/name`)."""
        return WorkQueue(name, self.clock, self.entropy.fork(f"queue of {name}"))


class Controller(ABC):
    """One controller. A controller without a queue of keys overrides `start` and `stop`."""

    name: ClassVar[str]
    """The name in kube-controller-manager, such as `replicaset-controller`."""

    workers: int = 1

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.client = context.client
        self.clock = context.clock
        self.queue = context.queue(self.name)

    def handle_changes(
        self,
        informer: Informer[AnyObject],
        on_change: Callable[[AnyObject], None],
        on_delete: Callable[[AnyObject], None] | None = None,
    ) -> None:
        """Call `on_change` for each added and each updated object, and `on_delete` for each deleted one."""
        informer.add_handler(
            self.name,
            on_add=on_change,
            on_update=lambda old, new: on_change(new),
            on_delete=on_delete,
        )

    @abstractmethod
    async def sync(self, key: str) -> Outcome:
        """Bring one object closer to its desired state.

        A `ClientError` that it raises counts as `Failed`, and a `NotFoundError` as `DONE`: the object is gone.
        """

    def start(self, group: TaskGroup) -> None:
        """Start the workers in a task group. The informers are synced."""
        run_workers(self.queue, self._reconcile, workers=self.workers, group=group)

    def stop(self) -> None:
        """Stop taking keys. The workers end after the keys that they are working on."""
        self.queue.shut_down()

    async def _reconcile(self, key: str) -> Outcome:
        outcome: Outcome = DONE
        try:
            outcome = await self.sync(key)
        except NotFoundError:
            pass
        except ClientError as error:
            outcome = Failed(str(error))
        await self.clock.wait(0)
        return outcome


def split_key(key: str) -> tuple[str, str]:
    """Namespace and name. The namespace of a cluster-scoped object is empty."""
    namespace, slash, name = key.rpartition("/")
    return (namespace, name) if slash else ("", key)
