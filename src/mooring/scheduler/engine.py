"""The engine: the believed cluster and the decisions about it, as a library.

Comes in   objects of a cluster as views; pending pods; a configuration
Goes out   decisions; with `assume`, columns that believe them

    engine = Engine(load_configuration(None), entropy=Entropy(seed=1))
    for view in views: engine.put(view)
    decision = engine.decide(engine.record(pod_view))
    if decision.node_name: engine.assume(decision)

Nothing here waits or writes anywhere: the scheduler's loop, `mooring explain`, benchmarks and tests all drive this
same object.

 1. A pod with a node is placed, unless it has finished; a pod without one is nobody's business until `decide`.
 2. `assume` believes a decision (and reserves what plugins reserve); `forget` takes it back exactly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.client.absent import AbsentClient
from mooring.kit.clock import SystemClock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.node_order import NodeOrder
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config import SchedulerConfiguration, expand_profiles
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.sampling import Sampling, sampling_for
from mooring.scheduler.cycle.schedule_pod import NowS, SchedulingCycle, TieBreak
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.plugin import Reserve
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Status
from mooring.scheduler.framework.waiting_pods import WaitingPods

logger = logging.getLogger(__name__)

FINISHED = frozenset(("Succeeded", "Failed"))


CycleFactory = Callable[[Profile, Columns, TieBreak, Sampling | None, NowS], SchedulingCycle]
"""Makes the cycle of a profile: `SchedulingCycle`, or one with extenders."""


class UnknownProfileError(LookupError):
    """A pod asks for a scheduler name that no profile has."""


class Engine:
    """Columns and profiles, and the decisions that come of them."""

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        *,
        entropy: Entropy,
        registry: Registry | None = None,
        services: Mapping[str, object] | None = None,
        columns: Columns | None = None,
        tie_break: Callable[[Columns], TieBreak] | None = None,
        cycle_factory: CycleFactory = SchedulingCycle,
    ) -> None:
        registry = registry if registry is not None else default_registry()
        self.columns = columns if columns is not None else Columns()
        self.configuration = configuration
        at_hand: dict[str, object] = {
            "columns": self.columns,
            "client": AbsentClient(),
            "clock": VirtualClock(),
            "evictions": _NoEvictions(),
            "waiting_pods": WaitingPods(),
            "activate": _activate_nobody,
            "tell": _tell_nobody,
            **(services or {}),
        }
        clock = at_hand["clock"]
        assert isinstance(clock, SystemClock | VirtualClock), f"no clock: {clock!r}"
        die = tie_break(self.columns) if tie_break is not None else _random_tie_break(entropy.fork("ties"))
        order = NodeOrder(self.columns)
        self.cycles: Mapping[str, SchedulingCycle] = {
            name: cycle_factory(profile, self.columns, die, _sampling(profile, order, configuration), clock.now_s)
            for name, plan in expand_profiles(configuration, registry.implements).items()
            for profile in (registry.build(plan, {**at_hand, "entropy": entropy.fork(f"profile {name}")}),)
        }

    def put(self, view: ApiObject) -> None:
        """Takes in an object, new or changed."""
        if isinstance(view, Node):
            self.columns.put_node(view)
        elif isinstance(view, Pod):
            self._put_pod(view)
        else:
            self.columns.objects.of(type(view)).put(view)

    def remove(self, view: ApiObject) -> None:
        """Forgets an object. Forgetting one that nobody knows changes nothing."""
        if isinstance(view, Node):
            if view.metadata.name in self.columns.row_of:
                self.columns.remove_node(view.metadata.name)
        elif isinstance(view, Pod):
            uid = view.metadata.uid or view.key
            self._withdraw(uid)
            known = self.columns.pods.get(uid)
            if known is not None:
                self.columns.displace(known)
        else:
            self.columns.objects.of(type(view)).remove(view.key)

    def record(self, view: Pod) -> PodInfo:
        """A pending pod, ready to be decided about."""
        return self.columns.record(view)

    def decide(self, pod: PodInfo, *, in_full: bool = False) -> Decision:
        """Choose a node for a pod. Changes nothing."""
        return self.prepare(pod).decide(pod, in_full=in_full)

    def prepare(self, pod: PodInfo) -> SchedulingCycle:
        """The cycle of a pod, whose signature is looked up again if it was dropped."""
        if not pod.signature.registered:
            pod.signature = self.columns.signatures.current(pod.signature)
        return self.cycle_for(pod)

    def decide_admitted(self, cycle: SchedulingCycle, pod: PodInfo) -> Decision:
        """As `decide`, for a pod that the queue's gates have let in."""
        if not pod.signature.registered:
            pod.signature = self.columns.signatures.current(pod.signature)
        return cycle.decide_admitted(pod)

    def cycle_for(self, pod: PodInfo) -> SchedulingCycle:
        name = pod.signature.spec.scheduler_name or "default-scheduler"
        cycle = self.cycles.get(name)
        if cycle is None:
            raise UnknownProfileError(
                f"pod {pod.key} asks for scheduler {name!r}; the configuration has {', '.join(self.cycles)}"
            )
        return cycle

    def is_responsible_for(self, pod: PodInfo) -> bool:
        """Whether a profile of this scheduler has the pod's scheduler name."""
        return (pod.signature.spec.scheduler_name or "default-scheduler") in self.cycles

    def assume(self, decision: Decision) -> Status | None:
        """Believes a decision: the pod counts on its node from now on, unless a plugin cannot reserve what it takes.

        A nomination is used up by the attempt, as in kube-scheduler, whether it succeeds or not.
        """
        pod, node_name = decision.pod, decision.node_name
        assert node_name is not None, f"{pod} was given no node"
        self.columns.withdraw(pod)
        self.columns.place(pod, node_name)
        reserves = self.cycle_for(pod).profile.reserves
        for count, plugin in enumerate(reserves):
            try:
                status = plugin.reserve(pod, pod.row)
            except PluginError as error:
                status = error.status
            if status is not None:
                _unreserve(reserves[: count + 1], pod, node_name)
                self.columns.displace(pod)
                return status.with_plugin(plugin.name)
        return None

    def forget(self, pod: PodInfo) -> None:
        """Takes an assumption back."""
        self.unreserve(pod, pod.node_name)
        self.columns.displace(pod)

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        """Plugins let go of what they hold for a pod on a node."""
        _unreserve(self.cycle_for(pod).profile.reserves, pod, node_name)

    def nominate(self, decision: Decision) -> tuple[PodInfo, ...]:
        """Promises the room that preemption will make. Returns the pods of lower priority that lose such a promise."""
        plan = decision.preemption
        assert plan is not None, f"{decision.pod} preempts nobody"
        nominated = self.columns.nominations.on(plan.node_name)
        outranked = tuple(pod for pod in nominated if pod.priority < decision.pod.priority)
        for pod in outranked:
            self.renominate(pod, "")
        self.renominate(decision.pod, plan.node_name)
        return outranked

    def renominate(self, pod: PodInfo, node_name: str) -> None:
        """Promises a pod another node, or none."""
        pod.nominated_node = node_name
        if node_name:
            self.columns.nominate(pod, node_name)
        else:
            self.columns.withdraw(pod)

    def _put_pod(self, view: Pod) -> None:
        uid = view.metadata.uid or view.key
        known = self.columns.pods.get(uid)
        if known is not None:
            self.columns.displace(known)
        is_finished = view.status.phase in FINISHED
        if view.spec.node_name or is_finished or view.metadata.deletion_timestamp is not None:
            self._withdraw(uid)
        if is_finished:
            return
        pod = self.record(view)
        if known is not None:
            pod.arrival = known.arrival
        if view.spec.node_name:
            pod.view = None  # a placed pod is counted, not read
            self.columns.place(pod, view.spec.node_name)
        elif view.status.nominated_node_name and not pod.terminating and self.is_responsible_for(pod):
            self.columns.nominate(pod, view.status.nominated_node_name)

    def _withdraw(self, uid: str) -> None:
        """A pod that has a node, or none to come, is promised none."""
        nominated = self.columns.nominations.get(uid)
        if nominated is not None:
            self.columns.withdraw(nominated)


class _NoEvictions:
    """For engines that only decide: no pod is evicted."""

    def is_running_for(self, uid: str) -> bool:
        return False


def _activate_nobody(uid: str) -> None:
    """For engines that only decide: there is no queue."""


def _tell_nobody(pod: PodInfo, type_: str, reason: str, action: str, note: str) -> None:
    """For engines that only decide: nobody reads events."""


def _unreserve(reserves: Sequence[Reserve], pod: PodInfo, node_name: str) -> None:
    """Lets go of what was reserved, last first; a user's plugin that fails at it keeps nobody else from it."""
    for plugin in reversed(reserves):
        try:
            plugin.unreserve(pod, node_name)
        except PluginError:
            logger.exception("plugin %s failed to unreserve pod %s on node %s", plugin.name, pod.key, node_name)


def _sampling(profile: Profile, order: NodeOrder, configuration: SchedulerConfiguration) -> Sampling | None:
    extenders = configuration.extenders
    sampling = sampling_for(
        profile,
        order,
        extenders_filter=any(extender.filter_verb for extender in extenders),
        extenders_score=any(extender.prioritize_verb for extender in extenders),
    )
    return Sampling(order, None) if sampling is None and extenders else sampling


def _random_tie_break(entropy: Entropy) -> TieBreak:
    def choose(rows: Sequence[int] | Int64s) -> int:
        return int(rows[entropy.integer_below(len(rows))])

    return choose
