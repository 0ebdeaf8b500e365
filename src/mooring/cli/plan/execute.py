"""Carries out a defragmentation: cordons nodes, then evicts one pod at a time and plans again after each.

1. A pod is evicted through the Eviction API, so that the API server checks its budgets once more. If a budget forbids
   the eviction, the command ends and says which.
2. After an eviction the command waits until the pod is gone, its controller has as many pods with a node and as many
   ready pods as before, and its budgets allow as many disruptions as before. Then it plans again with the cluster as
   it is. It ends when the plan has no more moves, or after `--max-moves` evictions.
3. With `--for` the node that makes room is cordoned until the command ends: otherwise the scheduler would put the
   evicted pods back. Without it the emptied nodes stay cordoned.
4. Ctrl-C ends the command between two steps: nothing is lost, and the same command goes on from there. However it
   ends, it says which nodes are cordoned.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace

from mooring.api.decode import decode_as
from mooring.api.kinds import NODE, POD, POD_DISRUPTION_BUDGET
from mooring.api.views.meta import controller_of
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import PodDisruptionBudget
from mooring.cli.cluster_source.assemble import Note
from mooring.cli.cluster_source.live import connect
from mooring.cli.errors import InputError, input_error
from mooring.cli.plan.run import PlanOptions, run_plan
from mooring.client.errors import ClientError, ForbiddenError, NotFoundError, TooManyRequestsError
from mooring.client.http.client import HttpClient
from mooring.client.http.connection import Connection
from mooring.client.interface import PatchForm, Selection
from mooring.controllers.pods import is_active, is_ready
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.scheduler.cache.disruption_budgets import compile_budget
from mooring.scheduler.plan.request import PlanResult

SETTLED_S_MAX = 300.0
"""Time after which a pod whose replacement does not run is an error."""
POLL_S = 0.5

Print = Callable[[str], None]


def execute_moves(options: PlanOptions, note: Note, print_line: Print, clock: Clock) -> None:
    """Plans, evicts, waits and plans again. Raises `InputError`."""
    connection = connect(options.kubeconfig, options.context, clock)
    mover = Mover(connection, clock)
    done, room = 0, ""
    try:
        while done < options.moves_max:
            requested = replace(options, moves_max=options.moves_max - done, uncordoned=(room,) if room else ())
            result = run_plan(requested, io.BytesIO(), _ignore, clock)
            if not result.moves:
                _check_placed(options, result)
                break
            if options.for_pod and room != result.placements[0].node:
                mover.uncordon(room)
                room = result.placements[0].node
            move = result.moves[0]
            print_line(f"{done + 1}. evict {move.pod} from {move.from_node} (expected on {move.to_node})")
            if mover.carry_out(move.pod, (room,) if room else result.cordoned):
                done += 1
    except (InputError, KeyboardInterrupt):
        note(f"stopped after {_moved(done)}; the same command goes on from here")
        raise
    finally:
        mover.uncordon(room)
        if mover.cordoned:
            names = " ".join(mover.cordoned)
            note(f"these nodes were cordoned and stay so; remove them, or: kubectl uncordon {names}")
    print_line(f"{_moved(done)}." + (f" Node {room} has room." if room else ""))


def _check_placed(options: PlanOptions, result: PlanResult) -> None:
    if options.for_pod and not result.placements:
        raise input_error(f"no moves make room for {', '.join(pod.pod for pod in result.pending)}")


def _moved(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'} moved"


class Mover:
    """Cordons nodes and evicts pods of one cluster. Raises `InputError`."""

    def __init__(self, connection: Connection, clock: Clock, settled_s_max: float = SETTLED_S_MAX) -> None:
        self._settled_s_max = settled_s_max
        self._connection = connection
        self._clock = clock
        self.cordoned: list[str] = []
        """The nodes that this command has cordoned."""

    def carry_out(self, pod: str, cordoned: tuple[str, ...]) -> bool:
        """Cordon nodes, evict a pod, wait until its replacement runs. False if the pod was gone already."""
        try:
            return run_real(self._move(pod, cordoned))
        except TooManyRequestsError as error:
            raise input_error(f"{pod} was not evicted, because a disruption budget forbids it: {error}") from error
        except ClientError as error:
            raise input_error(f"{pod} was not moved: {error}") from error

    def uncordon(self, node: str) -> None:
        """Uncordon a node, if this command has cordoned it."""
        if node in self.cordoned:
            try:
                run_real(self._uncordon(node))
            except ClientError as error:
                raise input_error(f"node {node} was not uncordoned: {error}") from error

    async def _move(self, pod: str, cordoned: tuple[str, ...]) -> bool:
        namespace, _, name = pod.partition("/")
        async with self._client() as client:
            for node in cordoned:
                await self._cordon(client, node)
            try:
                view = decode_as(Pod, await client.get(POD, namespace, name))
                before = await _read_state(client, view)
                await client.evict(namespace, name, view.metadata.uid)
            except NotFoundError:
                return False
            end_s = self._clock.now_s() + self._settled_s_max
            while missing := (await _read_state(client, view)).missing(before):
                if self._clock.now_s() >= end_s:
                    raise input_error(f"{pod} was evicted, but {missing} after {self._settled_s_max:.0f} s")
                await self._clock.wait(POLL_S)
            return True

    async def _cordon(self, client: HttpClient, node: str) -> None:
        if not decode_as(Node, await client.get(NODE, "", node)).spec.unschedulable:
            await client.patch(NODE, "", node, {"spec": {"unschedulable": True}}, form=PatchForm.MERGE)
            self.cordoned.append(node)

    async def _uncordon(self, node: str) -> None:
        async with self._client() as client:
            await client.patch(NODE, "", node, {"spec": {"unschedulable": None}}, form=PatchForm.MERGE)
        self.cordoned.remove(node)

    def _client(self) -> HttpClient:
        return HttpClient(self._connection, self._clock, Entropy(0), component="plan")


@dataclass(frozen=True, slots=True)
class _EvictedPod:
    """What an eviction changes, and the replacement of the pod restores."""

    pod: str
    owner: str
    exists: bool
    placed: int
    """Pods of the same controller that have a node and do not end."""
    ready: int
    allowed: dict[str, int]
    """By name: the disruptions that the budgets of the pod allow."""

    def missing(self, before: _EvictedPod) -> str:
        """What is not as before the eviction; empty if the pod has been replaced."""
        if self.exists:
            return f"{self.pod} has not ended"
        if self.placed < before.placed:
            return f"{self.owner} has {self.placed} pods on nodes instead of {before.placed}"
        if self.ready < before.ready:
            return f"{self.owner} has {self.ready} ready pods instead of {before.ready}"
        for name, allowed in before.allowed.items():
            now = self.allowed.get(name, allowed)
            if now < allowed:
                return f"PodDisruptionBudget {name} allows {now} disruptions instead of {allowed}"
        return ""


async def _read_state(client: HttpClient, pod: Pod) -> _EvictedPod:
    metadata = pod.metadata
    owner = controller_of(metadata)
    assert owner is not None, f"{pod.key} has no controller: plans do not move it"
    listing = await client.list(POD, Selection(metadata.namespace))
    pods = [decode_as(Pod, item) for item in listing.items]
    placed = [candidate for candidate in pods if _is_of(candidate, owner.uid) and candidate.spec.node_name]
    return _EvictedPod(
        pod.key,
        f"{owner.kind} {metadata.namespace}/{owner.name}",
        any(candidate.metadata.uid == metadata.uid for candidate in pods),
        len(placed),
        sum(map(is_ready, placed)),
        await _allowed_disruptions(client, pod),
    )


async def _allowed_disruptions(client: HttpClient, pod: Pod) -> dict[str, int]:
    try:
        listing = await client.list(POD_DISRUPTION_BUDGET, Selection(pod.metadata.namespace))
    except (ForbiddenError, NotFoundError):
        return {}
    budgets = [decode_as(PodDisruptionBudget, item) for item in listing.items]
    compiled = [budget for budget in map(compile_budget, budgets) if budget is not None]
    return {budget.key: budget.allowed for budget in compiled if budget.matcher.matches(pod.metadata.labels)}


def _is_of(pod: Pod, owner_uid: str) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and owner.uid == owner_uid and is_active(pod)


def _ignore(text: str) -> None:
    """Notes about the input are printed once, not after each move."""
