"""However a binding ends, the columns then count exactly what they counted before."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pytest

from mooring.api.kinds import PERSISTENT_VOLUME
from mooring.api.views.pod import Pod
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import ANY_ADDRESS, HostPort
from mooring.scheduler.framework.plugin import Permit, PreBind, Reserve, Wait
from mooring.scheduler.framework.status import Status
from tests.builders import HOSTNAME, ZONE, disk, node, pod, pods_like, spread
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.scheduler.stories.actors import HOLDS_NOTHING, held_by_volume_binding
from tests.scheduler.world import World, play
from tests.storage_builders import from_nodes, storage_class, volume, waiting

_PORTS = tuple(
    HostPort(*port) for port in (("TCP", 80, "127.0.0.1"), ("UDP", 53, ANY_ADDRESS), ("TCP", 8080, ANY_ADDRESS))
)


class Saboteur(Reserve, Permit, PreBind):
    """Does to the pod `subject`, at one point, what it is reported."""

    name = "Saboteur"
    point = ""
    answer: object = None

    def reserve(self, pod: PodInfo, row: int) -> Status | None:
        return self._say("reserve", pod)  # type: ignore[return-value]

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        return None

    def permit(self, pod: PodInfo, node_name: str) -> Wait | Status | None:
        return self._say("permit", pod)  # type: ignore[return-value]

    async def pre_bind(self, pod: PodInfo, node_name: str) -> Status | None:
        return self._say("pre_bind", pod)  # type: ignore[return-value]

    def _say(self, point: str, pod: PodInfo) -> object:
        if point != self.point or pod.name != "subject":
            return None
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def fingerprint(columns: Columns) -> Mapping[str, object]:
    """All that is counted: sums by resource, ports, disks and claims, selectors by row, terms by domain, promises."""
    used = {
        columns.node_names[row]: dict(zip(columns.resources.names, columns.resources.used[:, row].tolist()))
        for row in columns.row_of.values()
    }
    return {
        "used": {name: {key: n for key, n in sums.items() if n} for name, sums in used.items()},
        "pods": {uid: record.node_name for uid, record in columns.pods.items()},
        "on rows": {columns.node_names[row]: sorted(columns.pods_on[row]) for row in columns.row_of.values()},
        "lowest": columns.priority_lowest[: columns.height].tolist(),
        "counted": [
            (
                pod_class.namespace,
                sorted(pod_class.labels.items()),
                dict(pod_class.rows),
                dict(pod_class.rows_terminating),
            )
            for pod_class in columns.selectors.classes
            if pod_class.rows or pod_class.rows_terminating
        ],
        "counters": [
            np.trim_zeros(counter.rows[: columns.height], "b").tolist() for counter in columns.selectors.counters
        ],
        "terms": sorted(
            (str(term.term.key), term.domain_counts().tolist()) for term in columns.terms if term.pod_count
        ),
        "ports": {
            name: [columns.ports.conflicts_at((port,), row) for port in _PORTS] for name, row in columns.row_of.items()
        },
        "claims": {claim: dict(columns.volumes.users_of(claim)) for claim in ("default/data", "default/other")},
        "promises": {name: [p.uid for p in columns.nominations.on(name)] for name in columns.nominations.nodes()},
    }


_SUBJECTS = {
    "plain": pod("subject", cpu=1, memory="1Gi", others={"example.com/gpu": 1}, priority=7),
    "with ports": pod("subject", cpu=1, ports=["80", "53/UDP", "127.0.0.1:8080"]),
    "with anti-affinity": pod(
        "subject",
        cpu=1,
        labels={"app": "web"},
        apart=[pods_like(HOSTNAME, app="web")],
        near=[pods_like(ZONE, app="db")],
        prefers_near=[(5, pods_like(ZONE, app="db"))],
        prefers_apart=[(7, pods_like(HOSTNAME, tier="x"))],
    ),
    "with spreading": pod(
        "subject",
        cpu=1,
        labels={"app": "web"},
        spread=[spread(ZONE, app="web"), spread(HOSTNAME, hard=False, app="web")],
    ),
    "with volumes": pod("subject", cpu=1, claims=["data"], volumes=[disk("d1")]),
}
_POINTS = {
    "Reserve rejects": ("reserve", Status.unschedulable("no")),
    "Reserve fails": ("reserve", Status.error("no")),
    "Reserve raises": ("reserve", KeyError("no")),
    "Permit rejects": ("permit", Status.unschedulable("no")),
    "Permit raises": ("permit", KeyError("no")),
    "Permit times out": ("permit", Wait(0.2)),
    "PreBind rejects": ("pre_bind", Status.unschedulable("no")),
    "PreBind raises": ("pre_bind", KeyError("no")),
}
_FAULTS = {
    "the binding is rejected": Fault("bind", Outcome.CONFLICT, where=lambda request: request.name == "subject"),
    "the server is in trouble": Fault("bind", Outcome.BROKEN, where=lambda request: request.name == "subject"),
}


async def before_and_after(world: World, subject: str) -> None:
    """A cluster in which others are; the subject comes, fails, and is deleted before it can try again."""
    await world.create(storage_class("local"), waiting("data", version=""))
    await world.create(
        volume("disk-1", of_class="local", reached=from_nodes(ZONE, "a", "b"), claimed_by="data", version="")
    )
    await world.create(
        *(node(f"n{n}", cpu=4, zone=zone, others={"example.com/gpu": 2}) for n, zone in enumerate("aabb"))
    )
    await world.create(
        pod("there", cpu=1, labels={"app": "db", "tier": "x"}, on="n0", priority=3),
        pod("another", cpu=1, labels={"app": "web"}, on="n2", apart=[pods_like(HOSTNAME, app="web")], ports=["81"]),
    )
    await world.settle()
    # What counters and terms there are depends on who has asked: the first pod of the shape asks and is deleted.
    await world.create(pod_named(subject, "scout"))
    await world.settle(0.01)
    await world.delete("scout")
    await world.settle()
    scheduler = world.scheduler
    before = fingerprint(scheduler.engine.columns)
    await world.create(_SUBJECTS[subject])
    await world.settle(0.9)
    reported = await world.condition("subject")
    assert reported is not None
    assert reported[0] == "False", reported
    await world.delete("subject")
    await world.settle()
    assert fingerprint(scheduler.engine.columns) == before
    assert len(scheduler.assumed_pods) == len(scheduler.waiting_pods) == len(scheduler.queue) == 0
    assert scheduler.bindings.running == {}
    assert held_by_volume_binding(scheduler) == HOLDS_NOTHING


def pod_named(subject: str, name: str) -> Pod:
    found = _SUBJECTS[subject]
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, name=name))


@pytest.mark.parametrize(
    ("subject", "point"),
    [
        (subject, point)
        for subject in _SUBJECTS
        for point, (where, _) in _POINTS.items()
        if (subject, where) != ("with volumes", "pre_bind")  # they wait for a controller before it is asked
    ],
)
def test_a_plugin_that_rejects_or_raises(subject: str, point: str) -> None:
    where, answer = _POINTS[point]
    saboteur = type("Saboteur", (Saboteur,), {"point": where, "answer": answer})

    async def story(world: World) -> None:
        await before_and_after(world, subject)

    play(story, plugins=(saboteur,))


@pytest.mark.parametrize("subject", [name for name in _SUBJECTS if name != "with volumes"])
@pytest.mark.parametrize("fault", _FAULTS)
def test_a_binding_that_fails(subject: str, fault: str) -> None:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(_FAULTS[fault]))

    async def story(world: World) -> None:
        await before_and_after(world, subject)

    play(story, through=through)


@pytest.mark.parametrize("outcome", [Outcome.CONFLICT, Outcome.REQUEST_LOST, Outcome.BROKEN], ids=lambda o: o.name)
def test_a_volume_that_cannot_be_written(outcome: Outcome) -> None:
    def through(client: Client, clock: VirtualClock) -> Client:
        return FaultyClient(client, clock, Script(Fault("patch", outcome, kind=PERSISTENT_VOLUME, times=None)))

    async def story(world: World) -> None:
        await before_and_after(world, "with volumes")

    play(story, through=through)
