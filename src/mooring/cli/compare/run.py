"""One run of `mooring compare`: reads the cluster once, and places its pods under each configuration and seed.

1. All configurations see the same cluster, the same pods in the same order, and the same seeds.
2. With all pods: pods of DaemonSets, static pods, and pods without a controller stay where they are.
3. The bound is that of the cluster, not of a configuration: no configuration can place more pods.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from mooring.api.errors import ObjectError
from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import controller_of
from mooring.api.views.pod import Pod, PodStatus
from mooring.api.well_known import NODE_BOUND_OWNERS
from mooring.cli.cluster_source.assemble import Note, assemble, build_engine, read_sources
from mooring.cli.cluster_source.cluster_input import ClusterInput
from mooring.cli.cluster_source.pods import in_queue_order
from mooring.cli.errors import input_error
from mooring.cli.manifests.read import find_sources
from mooring.cli.terminal import ProgressBar
from mooring.kit.clock import Clock, SystemClock, parse_rfc3339
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.bound import most_pods
from mooring.scheduler.plan.compare import ConfigurationOutcome, place_all
from mooring.scheduler.plan.request import Bound
from mooring.scheduler.plan.what_if import released_claim

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of the command."""

    clusters: tuple[str, ...] = ()
    kubeconfig: str = ""
    context: str = ""
    configs: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    places_all: bool = False
    seeds: int = 3

    @property
    def is_live(self) -> bool:
        return not self.clusters or bool(self.kubeconfig or self.context)


class ConfigurationComparison(msgspec.Struct, frozen=True, rename="camel"):
    """The outcomes of each configuration, one for each seed."""

    node_count: int
    pods: int
    """Pods that are placed under each configuration."""
    outcomes: dict[str, list[ConfigurationOutcome]]
    bound: Bound


def run_compare(options: CompareOptions, stdin: BinaryIO, note: Note, clock: Clock) -> ConfigurationComparison:
    """Reads, places and measures. Raises `InputError`."""
    now_s = clock.wall_s()
    engines = {
        name: build_engine(None if name == DEFAULT else name, options.plugins, 1, now_s, note)
        for name in options.configs
    }
    dump = read_sources(find_sources(options.clusters, "--cluster"), stdin)
    source = assemble(
        dump,
        is_live=options.is_live,
        kubeconfig=options.kubeconfig,
        context=options.context,
        seed=1,
        now_s=now_s,
        clock=clock,
        note=note,
        names=", ".join(options.clusters),
        file_option="--cluster",
    )
    pods, staying, node_today = _divided(source.cluster, options.places_all)
    if not pods:
        raise input_error("found no pods to place: none is pending; --pods all places those of controllers anew")
    try:
        outcomes: dict[str, list[ConfigurationOutcome]] = {}
        bound: Bound | None = None
        with ProgressBar("placing", len(pods) * len(engines) * options.seeds, SystemClock()) as progress:
            for name, engine in engines.items():
                _fill(engine, source.cluster, staying, {pod.metadata.uid for pod in pods})
                records = [engine.record(pod) for pod in pods]
                bound = bound or most_pods(engine, [pod for pod in records if engine.is_responsible_for(pod)])
                outcomes[name] = [
                    place_all(engine, records, node_today, seed, lambda: progress.advance(1))
                    for seed in range(1, options.seeds + 1)
                ]
    except ObjectError as error:
        raise input_error(str(error)) from error
    assert bound is not None, "there is at least one configuration"
    return ConfigurationComparison(source.cluster.node_count, len(pods), outcomes, bound)


def _divided(cluster: ClusterInput, places_all: bool) -> tuple[list[Pod], list[Pod], dict[str, str]]:
    """The pods to place, those that stay, and the nodes of today of those that are placed anew."""
    if not places_all:
        return in_queue_order(cluster.pending), cluster.placed, {}
    anew = [pod for pod in cluster.placed if _is_placed_anew(pod)]
    staying = [pod for pod in cluster.placed if not _is_placed_anew(pod)]
    pods = [_as_created(pod) for pod in anew] + cluster.pending
    pods.sort(key=_creation)
    return pods, staying, {pod.key: pod.spec.node_name for pod in anew}


def _is_placed_anew(pod: Pod) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind not in NODE_BOUND_OWNERS and pod.metadata.deletion_timestamp is None


def _as_created(pod: Pod) -> Pod:
    """The pod before it got its node."""
    status = PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)
    return replace(pod, spec=replace(pod.spec, node_name=""), status=status)


def _creation(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return (parse_rfc3339(created) if created is not None else float("inf"), pod.key)


def _fill(engine: Engine, cluster: ClusterInput, staying: Sequence[Pod], uids: Set[str]) -> None:
    """Load the cluster without the pods with these uids, which hold no devices yet."""
    for view in (*cluster.objects, *staying):
        engine.put(released_claim(view, uids) if isinstance(view, ResourceClaim) else view)
