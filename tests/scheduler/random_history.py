"""Random histories of a cluster: events drawn from seeds, and the objects that are left in the end.

Input: a seed for the world, and one for each event. Output: an engine that processed the events, and one that is built
from the remaining objects.

 1. An event depends on its own seed and on the objects that exist, so that leaving out one does not change the others.
 2. The seed `NOTHING` is an event without effect: a failing history shrinks to the events that matter.
 3. Placed pods have different start times. Otherwise their importance would depend on the order of events, which a new
    engine does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.api.labels import compile_selector
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.cache import arrays, pods, selectors
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.selectors import PodSelector
from mooring.scheduler.cycle import result_cache
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.plugins.volume_binding.plugin import PodVolumes, VolumeBinding
from tests.api.builders import selector
from tests.builders import claim
from tests.scheduler.harness import engine_of, plugin_of
from tests.scheduler.random_world import APPS, NAMESPACES, NODE_NAMES, TOPOLOGIES, World

CountedFor = tuple[tuple[PodSelector, ...], bool]
Seeds = list[int]

NOTHING = 0
world_seeds = st.integers(0, 2**32)
event_seeds = st.lists(st.integers(NOTHING, 2**32), min_size=40, max_size=40)


class History:
    """A cluster as its events make it, and the objects that are left in the end."""

    def __init__(self, seed: int) -> None:
        world = World(seed)
        self.templates = [world.template() for _ in range(6)]
        self.objects: dict[tuple[type[ApiObject], str], ApiObject] = {
            (type(view), view.key): view for view in world.surroundings()
        }
        self.engine = engine_of(*self.objects.values())
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.nominated: dict[str, Pod] = {}
        self.counted: dict[object, CountedFor] = {}
        self.pending: list[PodInfo] = []
        self.assumed: list[PodInfo] = []
        """Pods that were decided and are not bound yet."""
        self.recorded = 0
        self.revision = 0
        for name in world.some(NODE_NAMES, one_in=2):
            self._put_node(world.node(name))
        for _ in range(world.integer_below(16)):
            self.place(world)

    def happen(self, seed: int) -> None:
        """One event, drawn from its seed."""
        if seed == NOTHING:
            return
        world = World(seed)
        events: tuple[Callable[[World], None], ...] = (
            *(self.put_node, self.put_node, self.remove_node, self.place, self.place, self.place, self.displace),
            *(self.nominate, self.relabel_namespace, self.put_object, self.count, self.sweep),
            *(self.record, self.record, self.decide, self.settle, self.settle, self.confirm),
        )
        world.choose(events)(world)

    def put_node(self, world: World) -> None:
        self._put_node(world.node(world.choose(NODE_NAMES)))

    def remove_node(self, world: World) -> None:
        node = self.nodes.pop(world.choose(NODE_NAMES), None)
        if node is not None:
            self.engine.remove(node)

    def place(self, world: World) -> None:
        """A pod appears on a node, or changes there; the node may be unknown."""
        view = world.pod(self.templates, f"p{world.integer_below(12)}", on=world.choose(NODE_NAMES))
        if not self._shares_a_port(view):
            self.pods[view.metadata.uid] = view
            self.engine.put(view)

    def displace(self, world: World) -> None:
        if self.pods:
            view = self.pods.pop(world.choose(list(self.pods)))
            self.engine.remove(view)

    def nominate(self, world: World) -> None:
        """A pending pod appears with a nomination, or is deleted."""
        view = world.pod(self.templates, f"q{world.integer_below(3)}", nominated=world.choose(NODE_NAMES))
        self.nominated.pop(view.metadata.uid, None)
        if world.integer_below(3):
            self.nominated[view.metadata.uid] = view
            self.engine.put(view)
        else:
            self.engine.remove(view)

    def relabel_namespace(self, world: World) -> None:
        self._put(world.namespace())

    def put_object(self, world: World) -> None:
        """Something around the pods changes, or a service, a controller or a budget goes."""
        if world.integer_below(3):
            self._put(world.change())
        else:
            gone = world.choose(world.controllers())
            self.objects.pop((type(gone), gone.key), None)
            self.engine.remove(gone)

    def count(self, world: World) -> None:
        """Somebody asks how many pods match, and goes on asking."""
        part = PodSelector(
            world.choose((None, frozenset(("default",)), frozenset(NAMESPACES[1:]))),
            compile_selector(
                world.choose((selector(app=world.choose(APPS)), selector("tier Exists"), selector("app NotIn web")))
            ),
        )
        condition = ((part,), bool(world.integer_below(2)))
        self.counted[part.key, condition[1]] = condition
        columns = self.engine.columns
        counter = columns.selectors.counter(*condition)
        for key in TOPOLOGIES:
            counter.domains(columns.labels.column(key), columns.height)

    def sweep(self, world: World) -> None:
        self.engine.columns.signatures.sweep()

    def record(self, world: World) -> None:
        """A pending pod becomes known, every other one more important than all placed ones; it is decided later."""
        self.recorded += 1
        view = world.pod(self.templates, f"r{self.recorded}")
        if world.integer_below(2):
            view = replace(view, spec=replace(view.spec, priority=1000))
        self.pending.append(self.engine.record(view))

    def decide(self, world: World) -> None:
        if self.pending:
            self.engine.decide(world.choose(self.pending), in_full=bool(world.integer_below(2)))

    def settle(self, world: World) -> None:
        """A pending pod is decided about, and what comes of it happens; sometimes binding fails and it is forgotten."""
        if not self.pending:
            return
        record = world.choose(self.pending)
        decision = self.engine.decide(record)
        if decision.preemption is not None:
            self._nominate(decision, decision.preemption.node_name)
        elif decision.node_name is not None:
            self._nominate_nothing(record)
            assert self.engine.assume(decision) is None, f"{record} could not reserve"
            self.pending.remove(record)
            self.assumed.append(record)
            if self._reserved(record) is not None:
                self.confirm(world)  # an engine built anew could not know which volumes were meant
        elif decision.clears_nomination:
            self._nominate_nothing(record)
            self.engine.columns.withdraw(record)
            record.nominated_node = ""

    def confirm(self, world: World) -> None:
        """The pod that was assumed last is bound; or binding fails, and it is forgotten and pending again."""
        if not self.assumed:
            return
        record = self.assumed.pop()
        if world.integer_below(2):
            self._bind(record, world)
        else:
            self.engine.forget(record)
            record.nominated_node = record.node_name = ""
            self.pending.append(record)

    def built_anew(self) -> Engine:
        """An engine that never knew anything but what is left."""
        anew = engine_of(*self.objects.values(), *self.nodes.values(), *self.pods.values(), *self.nominated.values())
        for record in self.assumed:
            assert record.view is not None
            anew.columns.place(anew.record(record.view), record.node_name)
        return anew

    def as_it_is_now(self, record: PodInfo) -> Pod:
        """The view of a pending pod, with the nomination that it has by now."""
        assert record.view is not None
        return self.nominated.get(record.uid, record.view)

    def _put_node(self, node: Node) -> None:
        self.nodes[node.metadata.name] = node
        self.engine.put(node)

    def _put(self, item: ApiObject) -> None:
        self.revision += 1
        item = replace(item, metadata=replace(item.metadata, resource_version=str(self.revision)))
        self.objects[type(item), item.key] = item
        self.engine.put(item)

    def _nominate(self, decision: Decision, node_name: str) -> None:
        for outranked in self.engine.nominate(decision):
            self._nominate_nothing(outranked)
        view = decision.pod.view
        assert view is not None
        self.nominated.pop(decision.pod.uid, None)
        self.nominated[decision.pod.uid] = replace(view, status=replace(view.status, nominated_node_name=node_name))

    def _nominate_nothing(self, record: PodInfo) -> None:
        self.nominated.pop(record.uid, None)

    def _bind(self, record: PodInfo, world: World) -> None:
        """The API server confirms the assumption, with the volumes that were reserved."""
        view, reserved = record.view, self._reserved(record)
        assert view is not None
        for volume, claimed in reserved.bindings if reserved is not None else ():
            self._put(volume)
            self._put(claim(claimed.metadata.name, namespace=record.namespace, volume=volume.metadata.name))
        bound = Pod(
            metadata=view.metadata,
            spec=replace(view.spec, node_name=record.node_name),
            status=world.pod([view], record.name, on=record.node_name).status,
        )
        self.pods[record.uid] = bound
        self.engine.put(bound)

    def _reserved(self, record: PodInfo) -> PodVolumes | None:
        return plugin_of(self.engine, VolumeBinding).reserved_for(record)

    def _shares_a_port(self, view: Pod) -> bool:
        """Ports that two pods of a node share are freed with the first of them: that depends on history by design."""
        others = [other for uid, other in self.pods.items() if uid != view.metadata.uid]
        neighbours = [other for other in others if other.spec.node_name == view.spec.node_name]
        neighbours += [
            record.view for record in self.assumed if record.view and record.node_name == view.spec.node_name
        ]
        return any(_ports(other) & _ports(view) for other in neighbours)


@contextmanager
def forgetful(is_forgetful: bool) -> Iterator[None]:
    """Sweeps that spare nobody, and counters, answers and changes that are forgotten all the time."""
    with pytest.MonkeyPatch.context() as patched:
        if is_forgetful:
            patched.setattr(pods, "RECENT_USES", 0)
            patched.setattr(selectors, "COUNTERS_BYTES_MAX", 2048)
            patched.setattr(arrays, "LOG_LENGTH_MAX", 4)
            patched.setattr(result_cache, "CACHE_BYTES_MAX", 0)
        yield


def _ports(view: Pod) -> set[tuple[str, str, int]]:
    return {(p.host_ip, p.protocol, p.host_port) for container in view.spec.containers for p in container.ports}
