"""What batch writes save: CPU time of an object in a batch, relative to a single write, in turns in one process.

    python -m bench.batches            batches of 16 on a store in memory, 9 rounds of 1,024 objects
    python -m bench.batches --quick    few objects: does everything work?

1. Both ways write the same objects through the loopback client, on virtual time. A figure is the median of the
   quotients of the rounds.
2. `patch_status_many` is not measured: two statuses share nothing that could be prepared once (ADR 19).
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from time import process_time

import click

from bench.results import Figure, print_figures
from mooring.api.kinds import LEASE, NAMESPACE, POD
from mooring.api.well_known import NODE_LEASE_NAMESPACE
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.loopback import LoopbackClient
from mooring.client.batch_writes import create_many, renew_leases, renewal_patch
from mooring.client.interface import PatchForm
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.serving.users import MASTERS_GROUP, User
from mooring.store.memory import MemoryStore

BATCH = 16
OBJECTS, OBJECTS_QUICK = 1_024, 32
ROUNDS, ROUNDS_QUICK = 9, 1
SEED = 1
NAMESPACE_OF_PODS = "shop"

Way = Callable[[], Awaitable[None]]


async def figures(clock: VirtualClock, objects: int, rounds: int) -> list[Figure]:
    # Without controllers no service accounts exist, and ServiceAccount would reject every pod.
    settings = Settings(new_key(), disabled_admission_plugins=frozenset(("ServiceAccount",)))
    async with open_api_server(MemoryStore(), clock, Entropy(SEED), settings) as api_server:
        client = LoopbackClient(api_server, User("system:admin", groups=(MASTERS_GROUP,)), "bench")
        await client.create(NAMESPACE, "", {"metadata": {"name": NAMESPACE_OF_PODS}})
        pods = await _quotient(*_pod_writes(client, objects), rounds)
        leases = await _quotient(*await _lease_writes(client, clock, objects), rounds)
    return [
        Figure("create_many, of the CPU time of create", pods, "", at_most=0.8),
        Figure("renew_leases, of the CPU time of patch", leases, "", at_most=0.95),
    ]


def _pod_writes(client: LoopbackClient, objects: int) -> tuple[Way, Way]:
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    template = {
        "metadata": {"generateName": "web-", "labels": {"app": "web"}},
        "spec": {"containers": [container], "nodeName": "node-1"},
    }

    async def single() -> None:
        for _ in range(objects):
            await client.create(POD, NAMESPACE_OF_PODS, template)

    async def batches() -> None:
        for _ in range(objects // BATCH):
            _check(await create_many(client, POD, NAMESPACE_OF_PODS, template, [""] * BATCH))

    return single, batches


async def _lease_writes(client: LoopbackClient, clock: VirtualClock, objects: int) -> tuple[Way, Way]:
    names = [f"node-{number}" for number in range(objects)]
    for name in names:
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, **_spec_of_renewal(clock)}
        await client.create(LEASE, NODE_LEASE_NAMESPACE, {"metadata": {"name": name}, "spec": spec})

    async def single() -> None:
        await clock.wait(10)
        patch = renewal_patch(clock.wall_s())
        for name in names:
            await client.patch(LEASE, NODE_LEASE_NAMESPACE, name, patch, form=PatchForm.MERGE)

    async def batches() -> None:
        await clock.wait(10)
        for first in range(0, objects, BATCH):
            _check(await renew_leases(client, NODE_LEASE_NAMESPACE, names[first : first + BATCH], clock.wall_s()))

    return single, batches


def _spec_of_renewal(clock: VirtualClock) -> dict[str, object]:
    spec = renewal_patch(clock.wall_s())["spec"]
    assert isinstance(spec, dict), "a renewal has a spec"
    return spec


def _check(outcomes: Sequence[object]) -> None:
    assert all(isinstance(outcome, bytes) for outcome in outcomes), outcomes


async def _quotient(single: Way, batches: Way, rounds: int) -> float:
    """The median, over rounds, of the CPU time of `batches` by that of `single`."""
    await single()
    await batches()
    return median([await _cpu_s(batches) / await _cpu_s(single) for _ in range(rounds)])


async def _cpu_s(way: Way) -> float:
    gc.collect()
    gc.disable()
    started_s = process_time()
    await way()
    spent_s = process_time() - started_s
    gc.enable()
    return spent_s


@click.command()
@click.option("--quick", is_flag=True, help="Few objects: does everything work?")
def main(quick: bool) -> None:
    """What batch writes save."""
    clock = VirtualClock()
    sizes = (OBJECTS_QUICK, ROUNDS_QUICK) if quick else (OBJECTS, ROUNDS)
    measured = print_figures(run(figures(clock, *sizes), clock))
    if not quick and not all(figure.is_reached for figure in measured):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
