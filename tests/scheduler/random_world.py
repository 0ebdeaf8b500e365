"""Random nodes, pods and other objects, with every feature that scheduling reads.

Input: a seed for each object. Output: views, the same for the same seed.

There are few different values: three zones, three namespaces, a few labels, ports, disks and claims, so that pods often
match, conflict and preempt each other. Pods are drawn from templates, so that signatures repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod, PodAffinityTerm, TopologySpreadConstraint
from mooring.api.views.workloads import Namespace
from mooring.kit.entropy import Entropy
from tests.api.builders import node_selector, preferred, selector, term
from tests.builders import (
    HOSTNAME,
    MIB,
    ZONE,
    budget,
    claim,
    csi_node,
    disk,
    namespace,
    node,
    owned_by,
    persistent_volume,
    pod,
    pods_like,
    replica_set,
    service,
    spread,
    storage_class,
)

Item = TypeVar("Item")

RACK = "rack"
TOPOLOGIES = (ZONE, HOSTNAME, RACK)
NODE_NAMES = tuple(f"n{number}" for number in range(7))
NAMESPACES = ("default", "team-a", "team-b")
APPS = ("web", "db", "cache")
PORTS = ("80", "127.0.0.1:80", "53/UDP", "443")
CLAIMS = ("data", "logs", "scratch")
"""One is bound to a volume of a zone, one to a volume that a driver attaches, one waits for its first pod."""
DISKS = ("disk-1", "disk-2")
IMAGES = {"web:1": 300 * MIB, "db:1": 700 * MIB, "cache:1": 40 * MIB}
GPU = "example.com/gpu"
_TAINTS = ("gpu=true:NoSchedule", "old:PreferNoSchedule", "down:NoExecute", "slow=very:PreferNoSchedule")
_TOLERATIONS = ("gpu=true:NoSchedule", "old", "down:NoExecute", ":PreferNoSchedule")


class World:
    """Draws things, each from its own seed."""

    def __init__(self, seed: int) -> None:
        self._chance = Entropy(seed)

    def integer_below(self, limit: int) -> int:
        return self._chance.integer_below(limit)

    def choose(self, items: Sequence[Item]) -> Item:
        return self._chance.choose(items)

    def some(self, items: Sequence[Item], one_in: int = 3) -> list[Item]:
        return [item for item in items if self._now_and_then(one_in)]

    def node(self, name: str) -> Node:
        labels = {"disk": self.choose(("ssd", "hdd"))} if self._now_and_then(2) else {}
        if self._now_and_then(2):
            labels[RACK] = self.choose(("r1", "r2", ""))
        return node(
            name,
            cpu=self.choose((1, 2)),
            memory=self.choose(("2Gi", "4Gi")),
            pods=self.choose((2, 4, 20)),
            others={GPU: self.choose((0, 1, 2))} if self._now_and_then(3) else {},
            zone=self.choose(("a", "b", "c", None)),
            labels=labels,
            taints=self.some(_TAINTS, one_in=12),
            unschedulable=self._now_and_then(16),
            images={name: IMAGES[name] for name in self.some(tuple(IMAGES))},
        )

    def namespace(self) -> Namespace:
        labels = {"team": self.choose(("a", "b"))} if self._now_and_then(2) else {}
        return namespace(self.choose(NAMESPACES), **labels)

    def template(self) -> Pod:
        """A pod without name and node."""
        app = self.choose(APPS)
        made = pod(
            "template",
            namespace=self.choose(NAMESPACES),
            labels={} if self._now_and_then(8) else {"app": app, **({"tier": "x"} if self._now_and_then(3) else {})},
            cpu=self.choose((None, "300m", "700m", 1)),
            memory=self.choose((None, "100Mi", "1Gi")),
            others={GPU: 1} if self._now_and_then(8) else {},
            image=f"{app}:1",
            ports=self.some(PORTS, one_in=10),
            priority=self.choose((None, 0, 10, 100)),
            preemption_policy="Never" if self._now_and_then(10) else None,
            tolerations=self.some(_TOLERATIONS),
            node_labels={"disk": "ssd"} if self._now_and_then(12) else {},
            owner=owned_by("ReplicaSet", app) if self._now_and_then(3) else None,
        )
        return self._with_wishes(made, app)

    def pod(self, templates: Sequence[Pod], name: str, on: str = "", nominated: str = "") -> Pod:
        """A pod of one of the templates. Volumes, times, gates and the beginning of its end are its own."""
        made = self.choose(templates)
        own = pod(
            name,
            on=on,
            nominated=nominated,
            started_s=float(self.integer_below(2**24)) if on else None,
            terminating=self._now_and_then(6 if on else 20),
            gates=["wait"] if not on and self._now_and_then(20) else [],
            claims=self.some(CLAIMS, one_in=8),
            volumes=[disk(name, read_only=self._now_and_then(2)) for name in self.some(DISKS, one_in=8)],
        )
        return Pod(
            metadata=replace(
                made.metadata, name=name, uid=f"uid-{name}", deletion_timestamp=own.metadata.deletion_timestamp
            ),
            spec=replace(made.spec, node_name=on, volumes=own.spec.volumes, scheduling_gates=own.spec.scheduling_gates),
            status=own.status,
        )

    def surroundings(self) -> list[ApiObject]:
        """Namespaces, volumes, services, controllers and budgets."""
        return [*(self.namespace() for _ in range(3)), *self._storage(), *self.some(self.controllers())]

    def change(self) -> ApiObject:
        """Something around the pods as it is from now on."""
        volume = persistent_volume(f"{self.choose(NAMESPACES)}-data", zone=self.choose(("a", "b", None)))
        free = persistent_volume(f"free-{self.integer_below(3)}", zone=self.choose(("a", "b")), storage_class="local")
        limit = csi_node(self.choose(NODE_NAMES), disks=self.integer_below(3))
        return self.choose((volume, free, limit, *self.some(self.controllers())))

    def controllers(self) -> list[ApiObject]:
        """What selects pods: services, replica sets, budgets."""
        return [
            view
            for where in NAMESPACES
            for app in APPS
            for view in (
                service(app, where, app=app),
                replica_set(app, selector(app=app), where),
                budget(app, selector(app=app), allowed=self.integer_below(2), namespace=where),
            )
        ]

    def _storage(self) -> list[ApiObject]:
        data, logs, scratch = CLAIMS
        objects: list[ApiObject] = [storage_class("local", waits=True)]
        objects += [csi_node(name, disks=1 + self.integer_below(2)) for name in self.some(NODE_NAMES, one_in=2)]
        for where in NAMESPACES:
            zone = self.choose(("a", "b", None))
            objects += [
                persistent_volume(f"{where}-{data}", zone=zone),
                claim(data, namespace=where, volume=f"{where}-{data}"),
                persistent_volume(f"{where}-{logs}", driver="disks"),
                claim(logs, namespace=where, volume=f"{where}-{logs}"),
                persistent_volume(f"{where}-free", zone=self.choose(("a", "b")), storage_class="local"),
                claim(scratch, namespace=where, storage_class="local"),
            ]
        return objects

    def pod_term(self, app: str) -> PodAffinityTerm:
        """Whom a pod of this application speaks of: its own kind, half of the time."""
        return pods_like(
            self.choose(TOPOLOGIES),
            *self.choose(((), (), ("tier DoesNotExist",), ("app In web,db",))),
            namespaces=self.choose(((), (), ("team-a",), ("default", "team-b"))),
            namespaces_like=self.choose(
                (None, None, selector(), selector(team="a"), selector("team NotIn a"), selector("team Exists"))
            ),
            **({"app": self.choose((app, app, *APPS))} if self._now_and_then(2) else {}),
        )

    def constraint(self, app: str, *, hard: bool) -> TopologySpreadConstraint:
        return spread(
            self.choose(TOPOLOGIES),
            max_skew=1 + self.integer_below(2),
            hard=hard,
            min_domains=self.choose((None, None, 2, 3)) if hard else None,
            honours_affinity=self.choose((None, True, False)),
            honours_taints=self.choose((None, True, False)),
            match_label_keys=self.choose(((), (), ("tier",))),
            **({} if self._now_and_then(6) else {"app": self.choose((app, app, *APPS))}),
        )

    def _with_wishes(self, made: Pod, app: str) -> Pod:
        wishes = pod(
            nodes=node_selector(term("disk In ssd,hdd"), term(f"{ZONE} In a")) if self._now_and_then(12) else None,
            prefers_nodes=[preferred(1 + self.integer_below(50), f"{ZONE} In a,b")] if self._now_and_then(6) else (),
            near=[self.pod_term(app) for _ in self.some("xy", one_in=8)],
            apart=[self.pod_term(app) for _ in self.some("xy", one_in=8)],
            prefers_near=[(1 + self.integer_below(99), self.pod_term(app)) for _ in self.some("xy", one_in=6)],
            prefers_apart=[(1 + self.integer_below(99), self.pod_term(app)) for _ in self.some("xy", one_in=6)],
            spread=[self.constraint(app, hard=True) for _ in self.some("xy", one_in=6)]
            + [self.constraint(app, hard=False) for _ in self.some("xy", one_in=6)],
        )
        constraints = wishes.spec.topology_spread_constraints
        spec = replace(made.spec, affinity=wishes.spec.affinity, topology_spread_constraints=constraints)
        return Pod(metadata=made.metadata, spec=spec, status=made.status)

    def _now_and_then(self, one_in: int) -> bool:
        return self.integer_below(one_in) == 0
