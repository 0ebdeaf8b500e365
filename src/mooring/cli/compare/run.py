"""One run of `mooring compare`: reads the cluster once, and places its pods under each configuration and seed.

The result is a table, JSON, or a plot as SVG.

1. All configurations see the same cluster, the same pods in the same order, and the same seeds.
2. With all pods: pods of DaemonSets, static pods, and pods without a controller stay where they are.
3. The bound is that of the cluster, not of a configuration: no configuration can place more pods.
4. A figure is the mean over the seeds; its spread (standard deviation) follows if it is not 0.
5. The plot has a row for each configuration and a bar for each node, in the same order everywhere: by the share under
   the first configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from xml.sax.saxutils import escape

import msgspec
from msgspec.structs import replace

from mooring.api.errors import ObjectError
from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import controller_of
from mooring.api.views.pod import Pod, PodStatus
from mooring.api.well_known import NODE_BOUND_OWNERS
from mooring.cli.cluster_source.assemble import (
    Note,
    SourceOptions,
    assemble,
    build_engine,
    in_queue_order,
    read_sources,
)
from mooring.cli.cluster_source.cluster_input import ClusterInput
from mooring.cli.errors import input_error
from mooring.cli.manifests.read import find_sources
from mooring.cli.terminal import ProgressBar, counted, table
from mooring.kit.clock import Clock, SystemClock, parse_rfc3339
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.bound import most_pods
from mooring.scheduler.plan.compare import ConfigurationOutcome, Summary, place_all
from mooring.scheduler.plan.request import Bound
from mooring.scheduler.plan.what_if import released_claim

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions(SourceOptions):
    """The options of the command."""

    configs: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    places_all: bool = False
    seeds: int = 3


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
    dump = read_sources(find_sources(options.files, "--cluster"), stdin)
    source = assemble(dump, options, now_s=now_s, clock=clock, note=note, file_option="--cluster")
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


# --- the result -----------------------------------------------------------------------------------------------


PLOT_WIDTH = 960
PLOT_ROW = 120
PLOT_MARGIN = 28
COLOURS = ("#2563eb", "#d9480f", "#2b8a3e", "#862e9c", "#a61e4d")


def as_data(comparison: ConfigurationComparison) -> dict[str, Any]:
    """With the mean and the spread of each figure."""
    data: dict[str, Any] = msgspec.to_builtins(comparison)
    data["summary"] = {
        name: {title: msgspec.to_builtins(Summary.of(values)) for title, values in _figures(outcomes)}
        for name, outcomes in comparison.outcomes.items()
    }
    return data


def as_json(comparison: ConfigurationComparison) -> str:
    return msgspec.json.format(msgspec.json.encode(as_data(comparison)), indent=2).decode() + "\n"


def as_lines(comparison: ConfigurationComparison) -> Iterator[str]:
    """The table."""
    names = {config: _short(config) for config in comparison.outcomes}
    columns = {config: dict(_figures(outcomes)) for config, outcomes in comparison.outcomes.items()}
    titles = list(dict.fromkeys(title for figures in columns.values() for title in figures))
    seeds = len(next(iter(comparison.outcomes.values())))
    yield f"{counted(comparison.pods, 'pod')} on {counted(comparison.node_count, 'node')}, {counted(seeds, 'seed')}"
    rows = [["", *names.values()]]
    for title in titles:
        cells = [_cell(figures.get(title)) for figures in columns.values()]
        rows.append([title, *cells])
    yield from table(rows, has_numbers=True)
    yield comparison.bound.text


def _figures(outcomes: Sequence[ConfigurationOutcome]) -> Iterator[tuple[str, list[float]]]:
    """Every figure with its value for each seed."""

    def over(read: Callable[[ConfigurationOutcome], float]) -> list[float]:
        return [float(read(outcome)) for outcome in outcomes]

    yield "placed", over(lambda outcome: outcome.placed)
    yield "pending", over(lambda outcome: outcome.pending)
    for reason in sorted({reason for outcome in outcomes for reason in outcome.pending_by_reason}):
        yield f"  {reason}", [float(outcome.pending_by_reason.get(reason, 0)) for outcome in outcomes]
    yield "nodes used", over(lambda outcome: outcome.nodes_used)
    yield "nodes empty", over(lambda outcome: outcome.nodes_empty)
    for resource in outcomes[0].allocation_percent:
        yield f"allocated {resource} %", [outcome.allocation_percent[resource] for outcome in outcomes]
    for resource in outcomes[0].stranded_percent:
        yield f"stranded {resource} %", [outcome.stranded_percent[resource] for outcome in outcomes]
    yield "zone skew", over(lambda outcome: outcome.zone_skew)
    yield "pods that land elsewhere", over(lambda outcome: outcome.moved)


def _cell(values: list[float] | None) -> str:
    if values is None:
        return "0"
    summary = Summary.of(values)
    mean = f"{summary.mean:.1f}".removesuffix(".0")
    return f"{mean} ± {summary.spread:.1f}" if summary.spread >= 0.05 else mean


def _short(config: str) -> str:
    return Path(config).stem


def as_svg(comparison: ConfigurationComparison) -> str:
    """A bar for each node, under the first seed."""
    first = next(iter(comparison.outcomes.values()))[0].node_shares
    order = sorted(first, key=lambda name: (-first[name], name))
    height = PLOT_MARGIN + len(comparison.outcomes) * (PLOT_ROW + PLOT_MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PLOT_WIDTH} {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        "<title>Requested share of each node, by configuration</title>",
    ]
    width = PLOT_WIDTH / max(len(order), 1)
    for index, (config, outcomes) in enumerate(comparison.outcomes.items()):
        top = PLOT_MARGIN + index * (PLOT_ROW + PLOT_MARGIN)
        shares, outcome = outcomes[0].node_shares, outcomes[0]
        caption = f"{_short(config)}: {outcome.placed} placed, {outcome.pending} pending, {outcome.nodes_empty} empty"
        parts.append(f'<text x="0" y="{top - 8}" fill="#868e96">{escape(caption)}</text>')
        parts.append(f'<rect x="0" y="{top}" width="{PLOT_WIDTH}" height="{PLOT_ROW}" fill="#868e9622"/>')
        colour = COLOURS[index % len(COLOURS)]
        for place, name in enumerate(order):
            bar = PLOT_ROW * min(shares.get(name, 0.0), 1.0)
            parts.append(
                f'<rect x="{place * width:.2f}" y="{top + PLOT_ROW - bar:.1f}" width="{max(width * 0.85, 0.5):.2f}"'
                f' height="{bar:.1f}" fill="{colour}"><title>{escape(name)} {shares.get(name, 0.0):.0%}</title></rect>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"
