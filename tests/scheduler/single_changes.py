"""Single changes of a small random cluster.

Inputs   a seed for the cluster, one for each change
Outputs  the change (object before and after), and an engine with the cluster after it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node, NodeSpec
from mooring.api.views.pod import Pod, ResourceRequirements
from mooring.scheduler.engine import Engine
from tests.builders import disk, pod
from tests.scheduler.harness import engine_of
from tests.scheduler.random_world import CLAIMS, DISKS, NODE_NAMES, PORTS, World

Kind = TypeVar("Kind", bound=ApiObject)
Changed = tuple[ApiObject | None, ApiObject | None]


def random_neighbourhood(seed: int) -> Neighbourhood:
    """A few nodes, pods and other objects, some of which may be missing."""
    world = World(seed)
    # Nodes usually have enough resources, so that a single constraint rejects the pod.
    is_roomy = world.integer_below(4) > 0
    templates = [world.template() for _ in range(3)]
    names = NODE_NAMES[: 1 + world.integer_below(3)]
    missing_one_in = world.choose((3, 12, 100))
    around: list[ApiObject] = [view for view in world.surroundings() if world.integer_below(missing_one_in)]
    around += [_roomy(world.node(name)) if is_roomy else world.node(name) for name in names]
    around += [world.pod(templates, f"p{n}", on=world.choose(names)) for n in range(world.integer_below(6))]
    around += [world.pod(templates, f"q{n}", nominated=world.choose(names)) for n in range(world.integer_below(2))]
    rejected = world.pod(templates, "asleep")
    return Neighbourhood(_picky(world, rejected) if is_roomy else rejected, around, templates)


class Neighbourhood:
    """A rejected pod, the objects of the cluster, and their possible changes."""

    def __init__(self, rejected: Pod, around: Iterable[ApiObject], templates: Sequence[Pod] = ()) -> None:
        self.rejected = rejected
        self.templates = templates
        self.objects = {(type(view), view.key): view for view in around}

    def rejectors(self) -> frozenset[str]:
        """The plugins that reject the pod; empty if it is placed, or nominated by preemption."""
        engine = engine_of(*self.objects.values())
        return engine.decide(engine.record(self.rejected)).unschedulable_plugins

    def draw(self, seed: int) -> Changed:
        """A random change."""
        world = World(seed)
        kinds: tuple[Callable[[World], Changed], ...] = (
            self._node_comes,
            self._node_changes,
            self._node_changes_a_little,
            self._node_goes,
            self._pod_comes,
            self._pod_changes,
            self._pod_goes,
            self._pod_goes,
            self._pod_changes_itself,
            self._object_comes_or_changes,
            self._object_goes,
        )
        return world.choose(kinds)(world)

    def engine_after(self, change: Changed) -> Engine:
        """A new engine with the cluster after the change."""
        old, new = change
        after = dict(self.objects)
        if old is not None:
            after.pop((type(old), old.key), None)
        if new is not None and not self.is_itself(new):
            after[type(new), new.key] = new
        return engine_of(*after.values())

    def rejected_after(self, change: Changed) -> Pod:
        new = change[1]
        return new if isinstance(new, Pod) and self.is_itself(new) else self.rejected

    def is_itself(self, item: ApiObject) -> bool:
        return isinstance(item, Pod) and item.key == self.rejected.key

    def _node_comes(self, world: World) -> Changed:
        return None, world.node("new")

    def _node_changes(self, world: World) -> Changed:
        old = self._some_node(world)
        return old, world.node(old.metadata.name)

    def _node_changes_a_little(self, world: World) -> Changed:
        old, other = self._some_node(world), world.node("other")
        own = {"kubernetes.io/hostname": old.metadata.name}
        return old, world.choose(
            (
                replace(old, metadata=replace(old.metadata, labels={**other.metadata.labels, **own})),
                replace(old, spec=replace(old.spec, taints=())),
                replace(old, spec=other.spec),
                replace(old, status=replace(old.status, allocatable=other.status.allocatable)),
            )
        )

    def _node_goes(self, world: World) -> Changed:
        return self._some_node(world), None

    def _pod_comes(self, world: World) -> Changed:
        return None, world.pod(self.templates, "new", on=self._some_node(world).metadata.name)

    def _pod_changes(self, world: World) -> Changed:
        placed = [pod for pod in self._of(Pod) if pod.spec.node_name]
        if not placed:
            return self._pod_comes(world)
        old = world.choose(placed)
        return old, world.choose((_labelled_like(old, world.choose(self.templates)), _scaled_down(old), _ending(old)))

    def _pod_goes(self, world: World) -> Changed:
        pods = self._of(Pod)
        return (world.choose(pods), None) if pods else self._pod_comes(world)

    def _pod_changes_itself(self, world: World) -> Changed:
        old, spec = self.rejected, self.rejected.spec
        tolerating = pod(tolerations=[world.choose(("gpu", "down", "node.kubernetes.io/unschedulable"))])
        return old, world.choose(
            (
                _labelled_like(old, world.choose(self.templates)),
                _scaled_down(old),
                replace(old, spec=replace(spec, scheduling_gates=())),
                replace(old, spec=replace(spec, tolerations=(*spec.tolerations, *tolerating.spec.tolerations))),
            )
        )

    def _object_comes_or_changes(self, world: World) -> Changed:
        new = world.choose((world.change(), *world.surroundings()))
        return self.objects.get((type(new), new.key)), new

    def _object_goes(self, world: World) -> Changed:
        others = [view for view in self.objects.values() if not isinstance(view, Node | Pod)]
        return (world.choose(others), None) if others else self._node_comes(world)

    def _some_node(self, world: World) -> Node:
        return world.choose(self._of(Node))

    def _of(self, kind: type[Kind]) -> list[Kind]:
        return [view for view in self.objects.values() if isinstance(view, kind)]


def _roomy(view: Node) -> Node:
    allocatable = {**view.status.allocatable, "cpu": 64, "memory": "256Gi", "pods": 110}
    return replace(view, spec=NodeSpec(), status=replace(view.status, allocatable=allocatable))


def _picky(world: World, view: Pod) -> Pod:
    """A pod that asks for little, but is particular about one thing: its neighbours, its volumes, or its node."""
    app = view.metadata.labels.get("app", "web")
    terms = [world.pod_term(app) for _ in range(1 + world.integer_below(4) // 3)]
    wishes = world.choose(
        (
            pod(near=terms),
            pod(apart=terms),
            pod(labels=view.metadata.labels),
            pod(spread=[world.constraint(app, hard=True) for _ in terms]),
            pod(spread=[world.constraint(app, hard=True) for _ in terms]),
            pod(claims=[world.choose(CLAIMS)]),
            pod(claims=[world.choose(CLAIMS)]),
            pod(volumes=[disk(world.choose(DISKS))]),
            pod(ports=[world.choose(PORTS)]),
            pod(node_labels={"disk": "ssd"}),
        )
    )
    return replace(view, spec=replace(wishes.spec, priority=-1))


def _labelled_like(view: Pod, other: Pod) -> Pod:
    return replace(view, metadata=replace(view.metadata, labels=other.metadata.labels))


def _scaled_down(view: Pod) -> Pod:
    containers = [replace(container, resources=ResourceRequirements()) for container in view.spec.containers]
    return replace(view, spec=replace(view.spec, containers=tuple(containers)))


def _ending(view: Pod) -> Pod:
    return replace(view, metadata=replace(view.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
