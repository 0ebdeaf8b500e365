"""The simulated user: creates, scales, updates, rolls back, pauses and deletes workloads, at random times.

1. All replicas together, with the greatest surge of one Deployment, fit into the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.api.document import Document
from mooring.api.kinds import DAEMON_SET, DEPLOYMENT, JOB, POD, STATEFUL_SET
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Client, Deletion, PatchForm, Propagation
from mooring.kit.entropy import Entropy
from tests.fault_tests.checker import InvariantChecker
from tests.fault_tests.workloads import IMAGES, NAMESPACE, DesiredWorkload, SeedKinds, container, document, unfinished

WORKLOADS_MAX = 3


@dataclass
class User:
    """A user who changes workloads at random."""

    client: Client
    entropy: Entropy
    checker: InvariantChecker
    seed_kinds: SeedKinds
    nodes: int
    pods_max: int
    workloads: dict[str, DesiredWorkload] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    _created: int = 0

    async def act(self) -> None:
        """One random change."""
        if not self.workloads:
            await self._create()
            return
        workload = self.entropy.choose(tuple(self.workloads.values()))
        match self.entropy.integer_below(10):
            case 0 | 1:
                await self._create()
            case 2 | 3:
                await self._scale(workload)
            case 4 | 5 | 6:
                await self._set_image(workload)
            case 7:
                await self._pause(workload)
            case 8:
                await self._delete(workload)
            case _:
                await self._delete_a_pod()

    async def resume_all(self) -> None:
        """Resume paused Deployments, which would not converge."""
        for workload in self.workloads.values():
            if workload.is_paused:
                await self._pause(workload)

    def unfinished(self) -> list[str]:
        """What is missing until all workloads are complete."""
        return unfinished([*self.workloads.values()], self.checker)

    def _room(self) -> int:
        return self.pods_max - sum(workload.cpu_cores for workload in self.workloads.values())

    async def _create(self) -> None:
        if not self._room() or len(self.workloads) == WORKLOADS_MAX:
            return
        self._created += 1
        kind = (
            self.seed_kinds.other if self.seed_kinds.other is not None and self.entropy.uniform() < 0.5 else DEPLOYMENT
        )
        size = self.nodes if kind is DAEMON_SET else 1 + self.entropy.integer_below(min(4, self._room()))
        workload = DesiredWorkload(kind, f"web-{self._created}", size)
        self.workloads[workload.name] = workload
        surge = self.entropy.integer_below(3)
        body = document(
            workload,
            surge=surge,
            unavailable=self.entropy.integer_below(2) if surge else 1,
            is_ordered=self.entropy.uniform() < 0.7,
            parallelism=1 + self.entropy.integer_below(3),
        )
        shown = {key: value for key, value in body["spec"].items() if key not in ("selector", "template")}
        self.actions.append(f"create {kind.kind} {workload.name} {shown}")
        await self.client.create(kind, NAMESPACE, body)

    async def _scale(self, workload: DesiredWorkload) -> None:
        if workload.kind not in (DEPLOYMENT, STATEFUL_SET):
            return
        workload.replicas = self.entropy.integer_below(min(5, workload.replicas + self._room() + 1))
        await self._patch(workload, {"replicas": workload.replicas})

    async def _set_image(self, workload: DesiredWorkload) -> None:
        """An update or a rollback."""
        if workload.kind is JOB:
            return
        workload.image = self.entropy.choose(IMAGES)
        await self._patch(workload, {"template": {"spec": {"containers": [container(workload)]}}})

    async def _pause(self, workload: DesiredWorkload) -> None:
        if workload.kind is not DEPLOYMENT:
            return
        workload.is_paused = not workload.is_paused
        await self._patch(workload, {"paused": workload.is_paused})

    async def _patch(self, workload: DesiredWorkload, spec: Document) -> None:
        self.actions.append(f"patch {workload.name} {spec}")
        await self.client.patch(workload.kind, NAMESPACE, workload.name, {"spec": spec}, form=PatchForm.MERGE)

    async def _delete(self, workload: DesiredWorkload) -> None:
        del self.workloads[workload.name]
        ways = (Propagation.BACKGROUND, Propagation.FOREGROUND)
        propagation = self.entropy.choose(
            ways if workload.kind is JOB else (None, *ways)
        )  # Jobs leave their pods otherwise
        self.actions.append(f"delete {workload.name} {propagation}")
        await self.client.delete(workload.kind, NAMESPACE, workload.name, Deletion(propagation=propagation))

    async def _delete_a_pod(self) -> None:
        pods = [pod.metadata.name for pod in self.checker.pods.values() if not pod.is_terminating]
        if not pods:
            return
        name = self.entropy.choose(pods)
        self.actions.append(f"delete pod {name}")
        try:
            await self.client.delete(POD, NAMESPACE, name, Deletion(grace_s=self.entropy.choose((None, 0))))
        except NotFoundError:
            return
        except ClientError as error:
            raise AssertionError(f"the user may delete {name}") from error
