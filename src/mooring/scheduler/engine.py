"""The engine: the columns and the scheduling cycles of all profiles, as a library.

    engine = Engine.from_files("cluster.json")
    decision = engine.place(manifest)

These two stand for:

    engine = Engine(load_configuration(None), entropy=Entropy(seed=0))
    for view in load("cluster.json"): engine.put(view)
    decision = engine.decide(engine.record(convert_as(Pod, manifest)))
    if decision.node_name: engine.assume(decision)

The scheduling loop, `mooring explain`, benchmarks and tests all use this class. No method awaits or writes to the
API.

1. A pod with a node is placed in the columns unless it has finished. A pod without a node has no effect until
   `decide`.
2. `assume` places the pod of a decision and reserves what plugins reserve; `forget` undoes exactly that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from mooring.api.decode import convert_as
from mooring.api.load import load, load_object
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.well_known import TERMINAL_PHASES
from mooring.api.yaml import load_document
from mooring.client.interface import UnavailableClient
from mooring.kit.clock import SystemClock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.logs import fields
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.node_order import NodeOrder
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import configuration_with, default_registry
from mooring.scheduler.config import SchedulerConfiguration, expand_profiles
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.filter_nodes import Sampling, sampling_for
from mooring.scheduler.cycle.schedule_pod import NowS, SchedulingCycle, TieBreak
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.plugin import Reserve
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Status
from mooring.scheduler.framework.waiting_pods import WaitingPods

logger = logging.getLogger(__name__)


CycleFactory = Callable[[Profile, Columns, TieBreak, Sampling | None, NowS], SchedulingCycle]
"""Makes the cycle of a profile: `SchedulingCycle`, or one with extenders."""


class UnknownProfileError(LookupError):
    """No profile has the pod's scheduler name."""


class Engine:
    """The columns of a cluster, and a scheduling cycle for each profile."""

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
        best_nodes_max: int = 0,
    ) -> None:
        """With `best_nodes_max`, decisions have the scores of that many nodes."""
        registry = registry if registry is not None else default_registry()
        self._named_count = 0
        self.columns = columns if columns is not None else Columns()
        self.configuration = configuration
        all_services: dict[str, object] = {
            "columns": self.columns,
            "client": UnavailableClient(),
            "clock": VirtualClock(),
            "evictions": _NoEvictions(),
            "waiting_pods": WaitingPods(),
            "activate": _do_nothing,
            "record_event": _do_nothing,
            "record_write": _do_nothing,
            **(services or {}),
        }
        clock = all_services["clock"]
        assert isinstance(clock, SystemClock | VirtualClock), f"no clock: {clock!r}"
        ties = entropy.fork("ties")
        choose = tie_break(self.columns) if tie_break is not None else _random_tie_break(ties)
        self.node_order = NodeOrder(self.columns)
        plans = expand_profiles(configuration, registry.implements)
        stream_of = {name: entropy.fork(f"profile {name}") for name in plans}
        self.streams: tuple[Entropy, ...] = (ties, *stream_of.values())
        """The random streams of all decisions."""
        self.cycles: Mapping[str, SchedulingCycle] = {
            name: cycle_factory(
                profile, self.columns, choose, _sampling(profile, self.node_order, configuration), clock.now_s
            )
            for name, plan in plans.items()
            for profile in (registry.build(plan, {**all_services, "entropy": stream_of[name]}),)
        }
        for cycle in self.cycles.values():
            cycle.best_nodes_max = best_nodes_max

    @classmethod
    def from_files(
        cls,
        *files: str | PathLike[str],
        config: str | PathLike[str] | Mapping[str, object] | None = None,
        plugins: Iterable[str] = (),
        seed: int = 0,
    ) -> Self:
        """The engine of a cluster in files and folders: manifests, or the output of `kubectl get -o json`.

        `config` is a KubeSchedulerConfiguration or Policy, as a file or as a dictionary. `plugins` are Python files or
        `package.module:Class`. The same files and seed give the same decisions.

        Raises `ObjectError`, `ConfigurationError`, `PluginFileError`, `BadPluginError`, and `OSError`.
        """
        if isinstance(config, str | PathLike):
            document: object = load_document(Path(config).read_bytes(), str(config)).data
        else:
            document = config
        configuration, registry = configuration_with(document, plugins)
        engine = cls(configuration, entropy=Entropy(seed), registry=registry)
        for view in load(*files):
            engine.put(view)
        return engine

    def place(self, pod: Pod | Mapping[str, object] | str, *, in_full: bool = False) -> Decision:
        """Choose a node for a pod and, if there is one, assume that the pod is there: the next pod finds it taken.

        `pod` is a manifest, as a dictionary or as YAML, or a view. It is taken as it is: only the namespace (`default`)
        and the name (from `generateName`) are completed, as an API server would. A decision in full has the scores and
        the status of each node. No pod is preempted: `Decision.preemption` has the victims.

        Raises `ObjectError` if the manifest cannot be read, `UnknownProfileError`, and `ValueError` if the pod has a
        node already.
        """
        manifest = load_object(pod) if isinstance(pod, str) else pod
        view = manifest if isinstance(manifest, Pod) else convert_as(Pod, self._with_name_and_namespace(manifest))
        known = self.columns.pods.get(view.metadata.uid or view.key)
        if known is not None:
            raise ValueError(f"pod {view.key} is on node {known.node_name} already; give the next one another name")
        decision = self.decide(self.record(view), in_full=in_full)
        if decision.node_name is None:
            return decision
        status = self.assume(decision)
        if status is None:
            return decision
        return replace(decision, node_name=None, status=status, message=status.message)

    def _with_name_and_namespace(self, manifest: Mapping[str, object]) -> Mapping[str, object]:
        metadata = manifest.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            return manifest  # decoding reports the error
        completed = {**metadata, "namespace": metadata.get("namespace") or "default"}
        if not metadata.get("name"):
            self._named_count += 1
            completed["name"] = f"{metadata.get('generateName') or 'pod-'}{self._named_count}"
        return {**manifest, "metadata": completed}

    def put(self, view: ApiObject) -> None:
        """Add or update an object."""
        if isinstance(view, Node):
            self.columns.put_node(view)
        elif isinstance(view, Pod):
            self._put_pod(view)
        else:
            self.columns.objects.of(type(view)).put(view)

    def remove(self, view: ApiObject) -> None:
        """Remove an object. Removing an unknown object changes nothing."""
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
        """The `PodInfo` of a pending pod."""
        return self.columns.record(view)

    def decide(self, pod: PodInfo, *, in_full: bool = False) -> Decision:
        """Choose a node for a pod. Changes nothing."""
        return self.prepare(pod).decide(pod, in_full=in_full)

    def feasible_rows(self, pod: PodInfo) -> Bools:
        """Per row: whether the filters accept the pod."""
        return self.prepare(pod).feasible_rows(pod)

    def prepare(self, pod: PodInfo) -> SchedulingCycle:
        """The cycle of a pod, whose signature is looked up again if it was dropped."""
        if not pod.signature.registered:
            pod.signature = self.columns.signatures.current(pod.signature)
        return self.cycle_for(pod)

    def cycle_for(self, pod: PodInfo) -> SchedulingCycle:
        name = pod.signature.scheduler_name
        cycle = self.cycles.get(name)
        if cycle is None:
            raise UnknownProfileError(
                f"pod {pod.key} names scheduler {name!r}; the configuration has {', '.join(self.cycles)}"
            )
        return cycle

    def is_responsible_for(self, pod: PodInfo) -> bool:
        """Whether a profile of this scheduler has the pod's scheduler name."""
        return pod.signature.scheduler_name in self.cycles

    def assume(self, decision: Decision) -> Status | None:
        """Place the pod on its node and run Reserve. Returns the status of the plugin that failed, if one did.

        The attempt ends the pod's nomination, as in kube-scheduler, whether it succeeds or not.
        """
        pod, node_name = decision.pod, decision.node_name
        assert node_name is not None, f"the decision for {pod} has no node"
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
        """Undo `assume`."""
        self.unreserve(pod, pod.node_name)
        self.columns.displace(pod)

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        """Run Unreserve of all plugins."""
        _unreserve(self.cycle_for(pod).profile.reserves, pod, node_name)

    def nominate(self, decision: Decision) -> tuple[PodInfo, ...]:
        """Nominate the pod to the node of its preemption. Returns the pods that lose their nomination by that."""
        plan = decision.preemption
        assert plan is not None, f"{decision.pod} has no preemption plan"
        nominated = self.columns.nominations.on(plan.node_name)
        outranked = tuple(pod for pod in nominated if pod.priority < decision.pod.priority)
        for pod in outranked:
            self.renominate(pod, "")
        self.renominate(decision.pod, plan.node_name)
        return outranked

    def renominate(self, pod: PodInfo, node_name: str) -> None:
        """Set the nominated node of a pod, or clear it."""
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
        is_finished = view.status.phase in TERMINAL_PHASES
        if view.spec.node_name or is_finished or view.metadata.deletion_timestamp is not None:
            self._withdraw(uid)
        if is_finished:
            return
        pod = self.record(view)
        if known is not None:
            pod.arrival = known.arrival
        if view.spec.node_name:
            pod.view = None  # the columns count a placed pod and do not read it again
            self.columns.place(pod, view.spec.node_name)
        elif view.status.nominated_node_name and not pod.terminating and self.is_responsible_for(pod):
            self.columns.nominate(pod, view.status.nominated_node_name)

    def _withdraw(self, uid: str) -> None:
        """Clear the nomination of a pod that has a node, has finished or was removed."""
        nominated = self.columns.nominations.get(uid)
        if nominated is not None:
            self.columns.withdraw(nominated)


class _NoEvictions:
    """For engines that only decide: no pod is evicted."""

    def is_running_for(self, uid: str) -> bool:
        return False


def _do_nothing(*arguments: object) -> None:
    """For engines that only decide: there is no queue, no API server for events, and no recording."""


def _unreserve(reserves: Sequence[Reserve], pod: PodInfo, node_name: str) -> None:
    """Run Unreserve in reverse order. The error of a user's plugin does not keep the others from running."""
    for plugin in reversed(reserves):
        try:
            plugin.unreserve(pod, node_name)
        except PluginError:
            logger.exception(
                "plugin %s failed to unreserve pod %s on node %s",
                plugin.name,
                pod.key,
                node_name,
                extra=fields(pod=pod.key, node=node_name, plugin=plugin.name),
            )


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
