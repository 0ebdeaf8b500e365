"""One small scenario, repeated with the death of a component at each of its requests.

Input: a component, the number of the request at which it dies, and whether that request is carried out. Output: broken
invariants; the verbs of all requests of the component, to know how many deaths there are.

The scenario is a Deployment that is created, updated and scaled without other faults. Seeds kill components at random
times; here each request is tested.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.kinds import DEPLOYMENT
from mooring.client.interface import PatchForm
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from tests.fault_tests.faults import Death, Weather
from tests.fault_tests.plane import Plane
from tests.fault_tests.run import CPU_OF_NODE, converge, kubelets_of, open_clients, play
from tests.fault_tests.user import User
from tests.fault_tests.wishes import CASTS, IMAGES, NAMESPACE, Wish, container, document
from tests.fault_tests.witness import Witness, WitnessedStore

NODES = 2
STEP_S = 2.5


@dataclass
class Rehearsal:
    """What came of it."""

    broken: list[str]
    verbs: list[str]
    """Of the first life of the component, as long as there are wishes."""
    deaths: int


def rehearse(component: str, death: Death | None = None) -> Rehearsal:
    clock = VirtualClock()
    return play(_rehearse(component, death, clock), CASTS[0], clock)


async def _rehearse(component: str, death: Death | None, clock: VirtualClock) -> Rehearsal:
    entropy = Entropy(1, "every step")
    witness = Witness(lambda owner: 0)
    store = WitnessedStore(witness)
    weather = Weather(likelihood=0.0)

    def fate(name: str, number: int, chance: Entropy) -> Death | None:
        return death if name == component and number == 0 else None

    async with open_clients(store, clock, entropy) as client_for, TaskGroup("rehearsal") as group:
        plane = Plane(client_for, clock, entropy.fork("plane"), weather, kubelets_of(NODES), (), fate)
        user = User(client_for("user"), entropy.fork("user"), witness, CASTS[0], NODES, NODES * CPU_OF_NODE)
        plane.start(group)
        await _wish(user, clock)
        verbs = [request.verb for request in plane.clients[component][0].requests]
        weather.is_calm = True
        await converge(plane, user)
        return Rehearsal([*witness.broken, *user.unfinished()], verbs, plane.deaths)


async def _wish(user: User, clock: VirtualClock) -> None:
    wish = user.wishes["web-1"] = Wish(DEPLOYMENT, "web-1", 2)
    await user.client.create(DEPLOYMENT, NAMESPACE, document(wish, surge=1, unavailable=0))
    await clock.wait(STEP_S)
    wish.image = IMAGES[1]
    template = {"spec": {"containers": [container(wish)]}}
    await user.client.patch(DEPLOYMENT, NAMESPACE, "web-1", {"spec": {"template": template}}, form=PatchForm.MERGE)
    await clock.wait(STEP_S)
    wish.replicas = 1
    await user.client.patch(DEPLOYMENT, NAMESPACE, "web-1", {"spec": {"replicas": 1}}, form=PatchForm.MERGE)
    await clock.wait(STEP_S)
