"""Carries out a defragmentation: cordons nodes, then evicts one pod at a time and plans again after each.

1. A pod is evicted through the Eviction API, so that the API server checks its budgets once more.
2. After an eviction the command waits until the pod is gone and all pods of its namespace have a node, then plans again
   with the cluster as it is. It ends when the plan has no more moves, or after `--max-moves` evictions.
3. Ctrl-C ends it between two steps: nothing is lost, and the same command goes on from there. Cordoned nodes stay
   cordoned, and the command says so.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

from mooring.api.decode import decode_as
from mooring.api.kinds import NODE, POD
from mooring.api.views.pod import Pod
from mooring.cli.asked_cluster import Note
from mooring.cli.errors import input_error
from mooring.cli.explain.live import connect
from mooring.cli.plan.run import PlanOptions, run_plan
from mooring.client.errors import ClientError
from mooring.client.http.client import HttpClient
from mooring.client.http.connection import Connection
from mooring.client.interface import PatchForm, Selection
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real

GONE_S_MAX = 300.0
"""Time after which a pod that does not end is an error."""
POLL_S = 0.5


def execute_moves(options: PlanOptions, note: Note, say: Callable[[str], None], clock: Clock) -> None:
    """Plans, evicts, waits and plans again. Raises `InputError`."""
    connection = connect(options.kubeconfig, options.context, clock)
    done = 0
    while done < options.moves_max:
        result = run_plan(replace(options, moves_max=options.moves_max - done), io.BytesIO(), _quiet, clock)
        if not result.moves:
            break
        move = result.moves[0]
        say(f"{done + 1}. evict {move.pod} from {move.from_node} (expected on {move.to_node})")
        try:
            run_real(_step(connection, clock, result.cordoned, move.pod))
        except ClientError as error:
            raise input_error(f"{move.pod} was not evicted: {error}") from error
        done += 1
    say(f"{done} pod{'' if done == 1 else 's'} moved.")
    if done:
        note("nodes that were cordoned stay so: kubectl uncordon NODE, or remove them")


async def _step(connection: Connection, clock: Clock, cordoned: tuple[str, ...], pod: str) -> None:
    """Cordon the nodes, evict one pod, and wait until it is gone."""
    namespace, _, name = pod.partition("/")
    async with HttpClient(connection, clock, Entropy(0), component="plan") as client:
        for node in cordoned:
            await client.patch(NODE, "", node, {"spec": {"unschedulable": True}}, form=PatchForm.MERGE)
        uid = decode_as(Pod, await client.get(POD, namespace, name)).metadata.uid
        await client.evict(namespace, name, uid)
        end_s = clock.now_s() + GONE_S_MAX
        while not await _is_settled(client, namespace, name, uid):
            if clock.now_s() >= end_s:
                raise input_error(f"{pod} and its replacement have not settled within {GONE_S_MAX:.0f} s")
            await clock.wait(POLL_S)


async def _is_settled(client: HttpClient, namespace: str, name: str, uid: str) -> bool:
    """Whether the pod is gone, and every pod of its namespace has a node."""
    listing = await client.list(POD, Selection(namespace))
    pods = [decode_as(Pod, item) for item in listing.items]
    return all(pod.metadata.uid != uid and bool(pod.spec.node_name) for pod in pods)


def _quiet(text: str) -> None:
    """Notes about the input are told once, not after each move."""
