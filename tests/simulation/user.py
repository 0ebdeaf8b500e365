"""The user: makes Deployments, scales, updates, rolls back, pauses and deletes them, at any time.

Comes in   a client that does what it is asked, and chance
Goes out   a history of wishes; at the end, which Deployments there are

 1. All replicas together, with the greatest surge of one Deployment, fit into the cluster: what is wished for can be.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.api.document import Document
from mooring.api.kinds import DEPLOYMENT, POD
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.promise import Client, Deletion, PatchForm, Propagation
from mooring.kit.entropy import Entropy
from tests.simulation.witness import Witness

NAMESPACE = "default"
IMAGES = ("app:1", "app:2", "app:3")
_AWAY = (
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2},
)


@dataclass
class Wish:
    replicas: int
    image: str
    is_paused: bool = False


@dataclass
class User:
    """Somebody with kubectl, and no plan."""

    client: Client
    entropy: Entropy
    witness: Witness
    pods_max: int
    wishes: dict[str, Wish] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    _made: int = 0

    async def act(self) -> None:
        """One thing, whichever."""
        if not self.wishes:
            await self._create()
            return
        name = self.entropy.choose(tuple(self.wishes))
        match self.entropy.integer_below(10):
            case 0 | 1:
                await self._create()
            case 2 | 3:
                await self._scale(name)
            case 4 | 5 | 6:
                await self._set_image(name)
            case 7:
                await self._pause(name)
            case 8:
                await self._delete(name)
            case _:
                await self._delete_a_pod()

    async def resume_all(self) -> None:
        """Nothing that is paused can converge."""
        for name, wish in self.wishes.items():
            if wish.is_paused:
                await self._pause(name)

    def _room(self) -> int:
        return self.pods_max - sum(wish.replicas for wish in self.wishes.values())

    async def _create(self) -> None:
        if not self._room() or len(self.wishes) == 3:
            return
        self._made += 1
        name = f"web-{self._made}"
        wish = self.wishes[name] = Wish(1 + self.entropy.integer_below(min(4, self._room())), IMAGES[0])
        surge = self.entropy.integer_below(3)
        unavailable = self.entropy.integer_below(2) if surge else 1
        self.done.append(f"create {name} {wish.replicas} surge {surge} unavailable {unavailable}")
        await self.client.create(DEPLOYMENT, NAMESPACE, _deployment(name, wish, surge, unavailable))

    async def _scale(self, name: str) -> None:
        wish = self.wishes[name]
        wish.replicas = self.entropy.integer_below(min(5, wish.replicas + self._room() + 1))
        await self._patch(name, {"replicas": wish.replicas})

    async def _set_image(self, name: str) -> None:
        """An update, or a rollback, as it happens."""
        wish = self.wishes[name]
        wish.image = self.entropy.choose(IMAGES)
        await self._patch(name, {"template": {"spec": {"containers": [_container(wish.image)]}}})

    async def _pause(self, name: str) -> None:
        wish = self.wishes[name]
        wish.is_paused = not wish.is_paused
        await self._patch(name, {"paused": wish.is_paused})

    async def _patch(self, name: str, spec: Document) -> None:
        self.done.append(f"patch {name} {spec}")
        await self.client.patch(DEPLOYMENT, NAMESPACE, name, {"spec": spec}, form=PatchForm.MERGE)

    async def _delete(self, name: str) -> None:
        del self.wishes[name]
        propagation = self.entropy.choose((None, Propagation.BACKGROUND, Propagation.FOREGROUND))
        self.done.append(f"delete {name} {propagation}")
        await self.client.delete(DEPLOYMENT, NAMESPACE, name, Deletion(propagation=propagation))

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


def _container(image: str) -> Document:
    return {"name": "c", "image": image, "resources": {"requests": {"cpu": "1000m"}}}


def _deployment(name: str, wish: Wish, surge: int, unavailable: int) -> Document:
    labels = {"app": name}
    spec: Document = {
        "terminationGracePeriodSeconds": 2,
        "tolerations": [*_AWAY],
        "containers": [_container(wish.image)],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": wish.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            },
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 2,
        },
    }
