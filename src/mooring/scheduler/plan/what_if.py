"""Changes of an engine that are undone: the transaction of plans.

    with WhatIf(engine, seed=1) as what_if:
        decision = what_if.decide(pod)
        what_if.place(decision)

1. Leaving the context undoes every step, in reverse order, and gives the engine its random streams and the start of its
   next search back. The columns then equal those before, and so do the decisions that follow.
2. Steps use the methods of the scheduling loop and are logged like its changes, so the result cache stays valid.
3. `suspend` undoes all steps until `resume` applies them again. In between the engine belongs to the scheduling loop.
4. No other code changes the engine between entering and leaving, except while the context is suspended.
5. Undoing and applying the steps takes time in which nothing else runs. A plan whose steps have more than `size_max` in
   sum `is_full`.
6. An evicted pod releases its ResourceClaims, as the controllers of a cluster do: a claim without another consumer is
   deallocated. A claim is released in place, so that it also serves as the claim that a template would give the
   replacement. A placed pod gets the devices of its claims, as PreBind would write them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from types import TracebackType

from msgspec.structs import replace

from mooring.api.views.devices import ResourceClaim, ResourceClaimStatus
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.workloads import PodDisruptionBudget
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.disruption_budgets import DisruptionBudgets
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.status import Status
from mooring.scheduler.plan.new_objects import NewNode
from mooring.scheduler.plan.slices import Slices
from mooring.scheduler.plugins.dynamic_resources.plugin import DynamicResources

SIZE_WITH_CLAIMS = 10
SIZE_OF_NODE = 3


class OutdatedPlan(Exception):
    """A step can no longer be applied, because the cluster changed while the plan was suspended."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A change of the engine."""

    apply: Callable[[], object]
    """Raises `OutdatedPlan`."""
    undo: Callable[[], object]
    size: int = 1
    """How long the step takes, undone and applied: a number of placements without claims and volumes."""
    placed: PodInfo | None = None
    """The pod that the step placed."""


class WhatIf:
    """An engine with changes that are undone."""

    def __init__(self, engine: Engine, seed: int, size_max: int | None = None) -> None:
        self._engine = engine
        self._size_max = size_max
        self._size = 0
        self._streams = [Entropy(seed, stream.name) for stream in engine.streams]
        self._search_start = 0
        """Where the next search for nodes starts, if a configuration samples nodes."""
        self._steps: list[_Step] = []
        self._placements: dict[int, list[_Step]] = {}
        """By the id of a `PodInfo`: the steps that placed it."""
        self._is_suspended = True
        self.budgets = DisruptionBudgets(engine.columns.objects.of(PodDisruptionBudget))
        self._claims = engine.columns.objects.of(ResourceClaim)
        self._claims_version = -1
        self._claims_of: dict[str, list[str]] = {}
        """By the uid of a pod: the keys of the claims that are reserved for it while no step is applied."""

    def __enter__(self) -> WhatIf:
        self._index_claims()
        self._exchange_streams()
        self._is_suspended = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_suspended:
            self.suspend()
        self._steps.clear()

    @property
    def engine(self) -> Engine:
        return self._engine

    def row_of(self, name: str) -> int:
        """The row of a node that was there when the plan started."""
        row = self._engine.columns.row_of.get(name)
        if row is None:
            raise OutdatedPlan(f"node {name} is gone")
        return row

    def node(self, name: str) -> Node:
        node = self._engine.columns.nodes[self.row_of(name)]
        assert node is not None, f"node {name} has a row and no object"
        return node

    def pods_on(self, name: str) -> Collection[PodInfo]:
        return self._engine.columns.pods_on[self.row_of(name)].values()

    def decide(self, pod: PodInfo) -> Decision:
        return self._engine.decide(pod)

    def place(self, decision: Decision) -> Status | None:
        """Assume the decision. Returns the status of the Reserve plugin that failed, if one did."""
        engine, pod, nominated_node = self._engine, decision.pod, decision.pod.nominated_node
        status = engine.assume(decision)
        if status is not None:
            pod.node_name = ""
            engine.renominate(pod, nominated_node)
            return status

        def undo() -> None:
            engine.forget(pod)
            pod.node_name = ""
            if nominated_node:
                engine.renominate(pod, nominated_node)

        has_claims = pod.view is not None and (pod.view.spec.resource_claims or pod.view.spec.volumes)
        step = _Step(lambda: _assume(engine, decision), undo, SIZE_WITH_CLAIMS if has_claims else 1, pod)
        self._add(step)
        self._placements.setdefault(id(pod), []).append(step)
        if names_claims(pod):
            allocation = ClaimAllocationStep(pod)
            self._do(partial(allocation.apply, engine), partial(allocation.undo, engine), SIZE_WITH_CLAIMS)
        return None

    def evict(self, pod: PodInfo) -> None:
        """Remove a placed pod from its node, and release its claims."""
        columns, node_name, placements = self._engine.columns, pod.node_name, self._placements.get(id(pod))

        def displace() -> None:
            if columns.pods.get(pod.uid) is not pod:
                raise OutdatedPlan(f"pod {pod.key} has changed")
            columns.displace(pod)

        if placements:  # this plan has placed the pod: its reservations end, too
            self._do(placements[-1].undo, placements[-1].apply, placements[-1].size)
        else:
            self._do(displace, lambda: columns.place(pod, node_name))
        for claim in self.claims_of(pod):
            self._release(claim, released_claim(claim, {pod.uid}))

    def _release(self, claim: ResourceClaim, released: ResourceClaim) -> None:
        def release() -> None:
            if self._claims.get(claim.key) is not claim:
                raise OutdatedPlan(f"ResourceClaim {claim.key} has changed")
            self._engine.put(released)

        self._do(release, partial(self._engine.put, claim), SIZE_WITH_CLAIMS)

    def claims_of(self, pod: PodInfo) -> list[ResourceClaim]:
        """The claims of a placed pod, also after its eviction."""
        if not self._claims:
            return []
        keys = self._claims_of.get(pod.uid)
        if keys is None:
            uses = pod.view.spec.resource_claims if pod.view is not None else ()
            keys = [f"{pod.namespace}/{use.resource_claim_name}" for use in uses if use.resource_claim_name]
            # Of a template.
            made = pod.view.status.resource_claim_statuses if pod.view is not None else ()
            keys += [
                f"{pod.namespace}/{claim_status.resource_claim_name}"
                for claim_status in made
                if claim_status.resource_claim_name
            ]
        return [claim for claim in map(self._claims.get, keys) if claim is not None]

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        renominate = self._engine.renominate
        self._do(partial(renominate, pod, node_name), partial(renominate, pod, pod.nominated_node))

    def put_node(self, node: Node) -> None:
        """Add a node, or replace one of the same name."""
        columns, name = self._engine.columns, node.metadata.name
        row = columns.row_of.get(name)
        before = columns.nodes[row] if row is not None else None
        undo = partial(columns.put_node, before) if before is not None else partial(columns.remove_node, name)
        self._do(partial(columns.put_node, node), undo, SIZE_OF_NODE)

    def add_node(self, new: NewNode) -> None:
        """Add a new node with its devices and volume limits."""
        self.put_node(new.node)
        for other in new.others:
            self._do(partial(_put_new, self._engine, other), partial(self._engine.remove, other), SIZE_WITH_CLAIMS)

    def remove_node(self, name: str) -> None:
        """Remove a node. Pods that are left on it stay in the columns without a row."""
        columns, removed = self._engine.columns, self.node(name)

        def remove() -> None:
            nonlocal removed
            removed = self.node(name)
            columns.remove_node(name)

        self._do(remove, lambda: columns.put_node(removed), SIZE_OF_NODE)

    def mark(self) -> int:
        """The number of steps so far, for `undo_to`."""
        return len(self._steps)

    def undo_to(self, mark: int) -> None:
        """Undo the steps after a mark."""
        while len(self._steps) > mark:
            step = self._steps.pop()
            step.undo()
            self._size -= step.size
            if step.placed is not None:
                self._placements[id(step.placed)].pop()

    def undo_in_slices(self, mark: int) -> Slices[None]:
        """Undo the steps after a mark, which may be many."""
        while len(self._steps) > mark:
            yield
            self.undo_to(len(self._steps) - 1)

    @property
    def is_full(self) -> bool:
        """Whether there are so many steps that `suspend` and `resume` would take too long with more of them."""
        return self._size_max is not None and self._size >= self._size_max

    def suspend(self) -> None:
        """Undo all steps, until `resume`."""
        for step in reversed(self._steps):
            step.undo()
        self._exchange_streams()
        self._is_suspended = True
        self._claims_version = self._claims.version

    def resume(self) -> None:
        """Apply all steps again. Raises `OutdatedPlan`, after which the plan must start again."""
        self._index_claims()
        self._exchange_streams()
        self._is_suspended = False
        for count, step in enumerate(self._steps):
            try:
                step.apply()
            except OutdatedPlan:
                del self._steps[count:]
                self.suspend()
                raise

    def _do(self, apply: Callable[[], object], undo: Callable[[], object], size: int = 1) -> None:
        apply()
        self._add(_Step(apply, undo, size))

    def _add(self, step: _Step) -> None:
        self._steps.append(step)
        self._size += step.size

    def _index_claims(self) -> None:
        if self._claims_version == self._claims.version:
            return
        self._claims_version = self._claims.version
        self._claims_of = {}
        for claim in self._claims:
            for consumer in claim.status.reserved_for:
                self._claims_of.setdefault(consumer.uid, []).append(claim.key)

    def _exchange_streams(self) -> None:
        for ours, theirs in zip(self._streams, self._engine.streams, strict=True):
            ours.exchange(theirs)
        order = self._engine.node_order
        self._search_start, order.start = order.start, self._search_start


def _assume(engine: Engine, decision: Decision) -> None:
    """Assume a decision of an earlier slice again."""
    if decision.node_name not in engine.columns.row_of:
        raise OutdatedPlan(f"node {decision.node_name} is gone")
    if decision.pod.uid in engine.columns.pods:
        raise OutdatedPlan(f"pod {decision.pod.key} has a node now")
    status = engine.assume(decision)
    if status is not None:
        decision.pod.node_name = ""
        raise OutdatedPlan(status.message)


def _put_new(engine: Engine, view: ApiObject) -> None:
    """Add an object of a new node."""
    if engine.columns.objects.of(type(view)).get(view.key) is not None:
        raise OutdatedPlan(f"{view.kind} {view.metadata.name} exists")
    engine.put(view)


def names_claims(pod: PodInfo) -> bool:
    return pod.view is not None and bool(pod.view.spec.resource_claims)


class ClaimAllocationStep:
    """The claims of a placed pod get their devices, as in PreBind: other pods may use the same claims then."""

    def __init__(self, pod: PodInfo) -> None:
        self._pod = pod
        self._before: list[ResourceClaim] = []

    def apply(self, engine: Engine) -> None:
        plugin = engine.cycle_for(self._pod).profile.plugins.get(DynamicResources.name)
        store = engine.columns.objects.of(ResourceClaim)
        self._before.clear()
        for claim in plugin.complete(self._pod) if isinstance(plugin, DynamicResources) else ():
            before = store.get(claim.key)
            if before is not None:
                self._before.append(before)
                engine.put(claim)

    def undo(self, engine: Engine) -> None:
        for claim in self._before:
            engine.put(claim)


def released_claim(claim: ResourceClaim, uids: Collection[str]) -> ResourceClaim:
    """The claim without pods that used it, and without its devices if no other pod does."""
    left = tuple(consumer for consumer in claim.status.reserved_for if consumer.uid not in uids)
    if len(left) == len(claim.status.reserved_for):
        return claim
    status = replace(claim.status, reserved_for=left) if left else ResourceClaimStatus()
    return replace(claim, status=status)
