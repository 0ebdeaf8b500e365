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
from tests.fault_tests.wishes import IMAGES, NAMESPACE, Cast, Wish, container, document, unfinished
from tests.fault_tests.witness import Witness

WISHES_MAX = 3


@dataclass
class User:
    """Somebody with kubectl, and no plan."""

    client: Client
    entropy: Entropy
    witness: Witness
    cast: Cast
    nodes: int
    pods_max: int
    wishes: dict[str, Wish] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    _made: int = 0

    async def act(self) -> None:
        """One thing, whichever."""
        if not self.wishes:
            await self._create()
            return
        wish = self.entropy.choose(tuple(self.wishes.values()))
        match self.entropy.integer_below(10):
            case 0 | 1:
                await self._create()
            case 2 | 3:
                await self._scale(wish)
            case 4 | 5 | 6:
                await self._set_image(wish)
            case 7:
                await self._pause(wish)
            case 8:
                await self._delete(wish)
            case _:
                await self._delete_a_pod()

    async def resume_all(self) -> None:
        """Nothing that is paused can converge."""
        for wish in self.wishes.values():
            if wish.is_paused:
                await self._pause(wish)

    def unfinished(self) -> list[str]:
        """What is not yet as it was wished."""
        return unfinished([*self.wishes.values()], self.witness)

    def _room(self) -> int:
        return self.pods_max - sum(wish.cpu_cores for wish in self.wishes.values())

    async def _create(self) -> None:
        if not self._room() or len(self.wishes) == WISHES_MAX:
            return
        self._made += 1
        kind = self.cast.other if self.cast.other is not None and self.entropy.uniform() < 0.5 else DEPLOYMENT
        size = self.nodes if kind is DAEMON_SET else 1 + self.entropy.integer_below(min(4, self._room()))
        wish = Wish(kind, f"web-{self._made}", size)
        self.wishes[wish.name] = wish
        surge = self.entropy.integer_below(3)
        body = document(
            wish,
            surge=surge,
            unavailable=self.entropy.integer_below(2) if surge else 1,
            is_in_order=self.entropy.uniform() < 0.7,
            at_once=1 + self.entropy.integer_below(3),
        )
        told = {key: value for key, value in body["spec"].items() if key not in ("selector", "template")}
        self.done.append(f"create {kind.kind} {wish.name} {told}")
        await self.client.create(kind, NAMESPACE, body)

    async def _scale(self, wish: Wish) -> None:
        if wish.kind not in (DEPLOYMENT, STATEFUL_SET):
            return
        wish.replicas = self.entropy.integer_below(min(5, wish.replicas + self._room() + 1))
        await self._patch(wish, {"replicas": wish.replicas})

    async def _set_image(self, wish: Wish) -> None:
        """An update, or a rollback, as it happens."""
        if wish.kind is JOB:
            return
        wish.image = self.entropy.choose(IMAGES)
        await self._patch(wish, {"template": {"spec": {"containers": [container(wish)]}}})

    async def _pause(self, wish: Wish) -> None:
        if wish.kind is not DEPLOYMENT:
            return
        wish.is_paused = not wish.is_paused
        await self._patch(wish, {"paused": wish.is_paused})

    async def _patch(self, wish: Wish, spec: Document) -> None:
        self.done.append(f"patch {wish.name} {spec}")
        await self.client.patch(wish.kind, NAMESPACE, wish.name, {"spec": spec}, form=PatchForm.MERGE)

    async def _delete(self, wish: Wish) -> None:
        del self.wishes[wish.name]
        ways = (Propagation.BACKGROUND, Propagation.FOREGROUND)
        propagation = self.entropy.choose(
            ways if wish.kind is JOB else (None, *ways)
        )  # Jobs leave their pods otherwise
        self.done.append(f"delete {wish.name} {propagation}")
        await self.client.delete(wish.kind, NAMESPACE, wish.name, Deletion(propagation=propagation))

    async def _delete_a_pod(self) -> None:
        pods = [pod.metadata.name for pod in self.witness.pods.values() if not pod.is_going]
        if not pods:
            return
        name = self.entropy.choose(pods)
        self.done.append(f"delete pod {name}")
        try:
            await self.client.delete(POD, NAMESPACE, name, Deletion(grace_s=self.entropy.choose((None, 0))))
        except NotFoundError:
            return
        except ClientError as error:
            raise AssertionError(f"the user may delete {name}") from error
