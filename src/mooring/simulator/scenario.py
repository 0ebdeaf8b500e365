"""The scenario file: what a simulation does. docs/simulate.md documents the fields.

`read_scenario` takes a YAML file and the values of parameters, and returns a `Scenario` or raises `ScenarioError` with
file and line.

1. `${name}` in a text stands for a parameter: a value of `parameters`, or of `--set`.
2. A file name is relative to the scenario file. One that comes from `--set` is relative to the working directory.
3. A `Scenario` is plain data: a worker process gets a copy, and its encoding is part of the identity of a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from mooring.api.durations import parse_duration
from mooring.api.quantity import parse_quantity
from mooring.api.yaml import YamlDocument, YamlError, load_document
from mooring.simulator.errors import ScenarioError

_PARAMETER = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)/(s|m|h|d)")
_RATE_UNIT_H = {"s": 3600.0, "m": 60.0, "h": 1.0, "d": 1 / 24}
_SEEDS = re.compile(r"([0-9]+)(?:\.\.([0-9]+))?")
_PATH = re.compile(r" - at `(?:key in )?`?\$\.?([^`]*)`")
GZIP_MAGIC = b"\x1f\x8b"
SEEDS_MAX = 1000
PODS_MAX = 10_000_000
"""Pods of one workload."""

Count = Annotated[int, Meta(ge=0, le=1_000_000)]
Percent = Annotated[float, Meta(gt=0, le=1000)]


class OpenbNodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    nodes: str
    shuffled: bool = False
    """Names get a random number in front, by the seed: ties by name differ between seeds."""


class Pool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Equal nodes."""

    name: str
    count: Count
    cpu: str
    memory: str
    pods: Count = 110
    resources: dict[str, str] = {}
    """Other resources, such as ephemeral-storage and GPUs."""
    labels: dict[str, str] = {}
    zones: Annotated[int, Meta(ge=0, le=100)] = 0
    """Nodes are in this many zones in turn; 0: in none."""
    price: Annotated[float, Meta(ge=0)] = 0.0
    """Per node and hour."""


class ClusterPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    openb: OpenbNodes | None = None
    dump: str = ""
    pools: list[Pool] = []


class OpenbPods(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pods: str
    demand: Annotated[float, Meta(gt=0, le=100)] | None = None
    """The list in random order, inflated to this multiple of the cluster's GPUs; None: the times of the trace."""


class TraceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A SimKube trace."""

    trace: str


class DlrmTrace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The Alibaba DLRM trace of 2025."""

    trace: str
    role_label: str = ""
    """The label of nodes that says which role they serve, CN or HN; empty: pods run on any node."""


class DumpWorkload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    arrivals: Literal["sampled", "replayed"] = "sampled"


class PodTemplatePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Pods of one template: a fixed number, or arrivals at a rate."""

    name: str
    cpu: str
    memory: str
    replicas: Count | None = None
    rate: str = ""
    lifetime: str = ""
    """Mean of an exponential distribution; empty: pods run until the end."""
    priority: int = 0
    labels: dict[str, str] = {}


class WorkloadPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    openb: OpenbPods | None = None
    dump: DumpWorkload | None = None
    dlrm: DlrmTrace | None = None
    simkube: TraceFile | None = None
    pods: list[PodTemplatePart] = []

    @property
    def has_end(self) -> bool:
        """Whether a simulation can end with the last arrival."""
        is_replayed = self.dump is not None and self.dump.arrivals == "replayed"
        return is_replayed or any(source is not None for source in (self.openb, self.dlrm, self.simkube))


class NodesPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Nodes of a pool, or by name."""

    pool: str = ""
    nodes: list[str] = []
    count: Count | None = None
    duration: str = field(name="for", default="")
    """For `fail` and `cordon`: the nodes come back after this time."""


class ScalePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    workload: str
    replicas: Count


class ScenarioEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One change at a time; with `every`, again and again."""

    at: str
    every: str = ""
    add: NodesPart | None = None
    remove: NodesPart | None = None
    cordon: NodesPart | None = None
    uncordon: NodesPart | None = None
    fail: NodesPart | None = None
    scale: ScalePart | None = None

    def change(self) -> tuple[str, NodesPart | ScalePart] | None:
        """The name of the change, and the change; None unless there is exactly one."""
        names = ("add", "remove", "cordon", "uncordon", "fail", "scale")
        found = [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]
        return found[0] if len(found) == 1 else None


class Samples(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    every: str = ""
    demand_percent: list[Percent] = []
    """Samples when this much of the cluster's GPUs has been asked for."""


class PolicyPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    config: str = ""
    plugins: list[str] = []


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    cluster: ClusterPart
    workload: WorkloadPart
    parameters: dict[str, str] = {}
    events: list[ScenarioEvent] = []
    duration: str = ""
    seeds: str | int = "1"
    ties: Literal["seed", "name"] = "seed"
    retry: bool = True
    """Rejected pods are tried again when something changed that may help."""
    samples: Samples = Samples()
    config: str = ""
    """The KubeSchedulerConfiguration of policies that have none. Empty: the defaults of kube-scheduler."""
    plugins: list[str] = []
    """Plugin files of all policies."""
    policies: dict[str, PolicyPart] = {}

    def input_files(self) -> list[str]:
        """The files and folders of cluster and workload."""
        cluster, workload = self.cluster, self.workload
        found = [
            cluster.openb.nodes if cluster.openb is not None else "",
            workload.openb.pods if workload.openb is not None else "",
            cluster.dump,
            workload.dlrm.trace if workload.dlrm is not None else "",
            workload.simkube.trace if workload.simkube is not None else "",
        ]
        return [file for file in found if file]

    @property
    def duration_s(self) -> float | None:
        return seconds(self.duration) if self.duration else None


def read_scenario(path: Path, values: Mapping[str, str]) -> Scenario:
    """The scenario of a file, with these values of parameters. Raises `ScenarioError`."""
    document = _loaded(path)
    data = document.data
    if not isinstance(data, dict):
        raise ScenarioError(f"{path}:{document.line}", "is no scenario; wanted a mapping with cluster and workload")
    declared = data.get("parameters") or {}
    if not isinstance(declared, dict):
        raise ScenarioError(f"{path}:{document.line_of('parameters')}", "parameters: wanted names and values")
    unknown = sorted(values.keys() - declared.keys())
    if unknown:
        known = f"it has {', '.join(declared)}" if declared else "it has none"
        raise ScenarioError(str(path), f"has no parameter {', '.join(unknown)}; {known}")
    known_values = {name: str(value) for name, value in declared.items()}
    known_values |= {name: _absolute(value) for name, value in values.items()}
    filled = _filled(data, known_values, document, "")
    try:
        scenario = msgspec.convert(filled, Scenario)
    except msgspec.ValidationError as error:
        text, _, _ = str(error).partition(" - at `")
        found = _PATH.search(str(error))
        place = found[1] if found is not None else ""
        raise ScenarioError(f"{path}:{document.line_of(place)}", f"{place}: {text}" if place else text) from error
    _validate(scenario, _Reporter(path, document))
    return _with_paths(scenario, path.parent)


def seconds(text: str) -> float:
    """A duration: as Go writes it, or in days (`2d`). Raises `ValueError`."""
    days, separator, rest = text.partition("d")
    if separator and days.isdecimal():
        return 86400.0 * int(days) + (seconds(rest) if rest else 0.0)
    return parse_duration(text)


def rate_per_h(text: str) -> float:
    """`60/h`, `1/m`. Raises `ValueError`."""
    match = _RATE.fullmatch(text)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"{text!r} is no rate; wanted a number and a unit such as 60/h, 1/m or 200/d")
    return float(match[1]) * _RATE_UNIT_H[match[2]]


def seeds_of(text: str | int) -> list[int]:
    """`7`, `1..5`, or both with commas. Raises `ValueError`."""
    seeds: list[int] = []
    for part in str(text).split(","):
        match = _SEEDS.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text!r} are no seeds; wanted numbers such as 7, 1..5 or 1,2,9")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= SEEDS_MAX:
            raise ValueError(f"{part} are no seeds; wanted 1 to {SEEDS_MAX} numbers in ascending order")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


class _Reporter:
    """Makes errors with the line of a field."""

    def __init__(self, path: Path, document: YamlDocument) -> None:
        self._path = path
        self._document = document

    def error(self, place: str, text: str) -> ScenarioError:
        return ScenarioError(f"{self._path}:{self._document.line_of(place)}", f"{place}: {text}")

    def check_duration(self, place: str, text: str) -> None:
        try:
            length_s = seconds(text)
        except ValueError as error:
            raise self.error(place, str(error)) from error
        if length_s < 0:
            raise self.error(place, f"{text} is negative")


def _validate(scenario: Scenario, reporter: _Reporter) -> None:
    cluster, workload = scenario.cluster, scenario.workload
    if sum((cluster.openb is not None, bool(cluster.dump), bool(cluster.pools))) != 1:
        raise reporter.error("cluster", "wanted exactly one of openb, dump and pools")
    sources = (workload.openb, workload.dump, workload.dlrm, workload.simkube, workload.pods or None)
    if sum(source is not None for source in sources) != 1:
        raise reporter.error("workload", "wanted exactly one of openb, dump, dlrm, simkube and pods")
    if workload.dump is not None and not cluster.dump:
        raise reporter.error("workload.dump", "the cluster is no dump; set cluster.dump to a file")
    if scenario.samples.demand_percent and workload.openb is None:
        raise reporter.error("samples.demandPercent", "only an OpenB workload has a demand for GPUs")
    if scenario.duration:
        reporter.check_duration("duration", scenario.duration)
    elif not workload.has_end:
        raise reporter.error("", "duration is missing; only a trace, or a dump that is replayed, has an end")
    if scenario.samples.every:
        reporter.check_duration("samples.every", scenario.samples.every)
    try:
        seeds_of(scenario.seeds)
    except ValueError as error:
        raise reporter.error("seeds", str(error)) from error
    _validate_pools(scenario, reporter)
    _validate_pods(scenario, reporter)
    for number, event in enumerate(scenario.events):
        _validate_event(scenario, event, f"events[{number}]", reporter)


def _validate_pools(scenario: Scenario, reporter: _Reporter) -> None:
    names: set[str] = set()
    for number, pool in enumerate(scenario.cluster.pools):
        place = f"cluster.pools[{number}]"
        if pool.name in names:
            raise reporter.error(f"{place}.name", f"{pool.name} is the name of another pool")
        names.add(pool.name)
        _validate_amounts({"cpu": pool.cpu, "memory": pool.memory}, place, reporter)
        _validate_amounts(pool.resources, f"{place}.resources", reporter)


def _validate_pods(scenario: Scenario, reporter: _Reporter) -> None:
    names: set[str] = set()
    for number, group in enumerate(scenario.workload.pods):
        place = f"workload.pods[{number}]"
        if group.name in names:
            raise reporter.error(f"{place}.name", f"{group.name} is the name of other pods")
        names.add(group.name)
        _validate_amounts({"cpu": group.cpu, "memory": group.memory}, place, reporter)
        if (group.replicas is None) == (not group.rate):
            raise reporter.error(place, "wanted either replicas or rate")
        if group.lifetime:
            reporter.check_duration(f"{place}.lifetime", group.lifetime)
        if group.rate:
            try:
                expected = rate_per_h(group.rate) * (scenario.duration_s or 0.0) / 3600
            except ValueError as error:
                raise reporter.error(f"{place}.rate", str(error)) from error
            if expected > PODS_MAX:
                raise reporter.error(f"{place}.rate", f"{expected:.0f} pods; at most {PODS_MAX}")


def _validate_amounts(amounts: Mapping[str, str], place: str, reporter: _Reporter) -> None:
    for name, text in amounts.items():
        try:
            parse_quantity(text)
        except ValueError as error:
            raise reporter.error(f"{place}.{name}", f"{text!r} is no quantity: {error}") from error


def _validate_event(scenario: Scenario, event: ScenarioEvent, place: str, reporter: _Reporter) -> None:
    reporter.check_duration(f"{place}.at", event.at)
    if event.every:
        reporter.check_duration(f"{place}.every", event.every)
        if not seconds(event.every):
            raise reporter.error(f"{place}.every", "is 0")
    found = event.change()
    if found is None:
        raise reporter.error(place, "wanted exactly one of add, remove, cordon, uncordon, fail and scale")
    name, change = found
    if isinstance(change, ScalePart):
        groups = {group.name: group for group in scenario.workload.pods}
        if change.workload not in groups or groups[change.workload].replicas is None:
            raise reporter.error(f"{place}.scale", f"no pods with replicas are called {change.workload}")
        return
    if bool(change.pool) == bool(change.nodes):
        raise reporter.error(f"{place}.{name}", "wanted either pool or nodes")
    if change.pool and change.pool not in {pool.name for pool in scenario.cluster.pools}:
        raise reporter.error(f"{place}.{name}.pool", f"no pool is called {change.pool}")
    if name == "add" and (not change.pool or not change.count):
        raise reporter.error(f"{place}.add", "wanted pool and count")
    if change.duration:
        if name not in ("fail", "cordon"):
            raise reporter.error(f"{place}.{name}.for", "belongs to fail and cordon")
        reporter.check_duration(f"{place}.{name}.for", change.duration)


def _loaded(path: Path) -> YamlDocument:
    try:
        data = path.read_bytes()
        if data.startswith(GZIP_MAGIC):
            raise ScenarioError(str(path), "is compressed, like a recording: mooring simulate --replay reads those")
        return load_document(data, str(path))
    except YamlError as error:
        raise ScenarioError(f"{path}:{error.line}", f"cannot be read as YAML: {error.text}") from error
    except OSError as error:
        raise ScenarioError(str(path), f"cannot be read: {error.strerror or error}") from error


def _filled(value: object, values: Mapping[str, str], document: YamlDocument, place: str) -> object:
    if isinstance(value, dict):
        return {key: _filled(item, values, document, f"{place}.{key}" if place else key) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values, document, f"{place}[{number}]") for number, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    unknown = [name for name in _PARAMETER.findall(value) if name not in values]
    if unknown:
        where = f"{document.file}:{document.line_of(place)}"
        raise ScenarioError(where, f"{place}: there is no parameter {', '.join(unknown)}")
    return _PARAMETER.sub(lambda match: values[match[1]], value)


def _absolute(value: str) -> str:
    """A value of `--set` that looks like a file, relative to the working directory."""
    is_file = "/" in value or "." in value
    return str(Path(value).absolute()) if is_file and not value.replace(".", "").isdecimal() else value


def _with_paths(scenario: Scenario, folder: Path) -> Scenario:
    """The scenario with file names that do not depend on the working directory."""

    def resolved(name: str) -> str:
        return str(folder / name) if name else ""

    replace = msgspec.structs.replace
    cluster, workload = scenario.cluster, scenario.workload
    if cluster.openb is not None:
        cluster = replace(cluster, openb=replace(cluster.openb, nodes=resolved(cluster.openb.nodes)))
    cluster = replace(cluster, dump=resolved(cluster.dump))
    if workload.openb is not None:
        workload = replace(workload, openb=replace(workload.openb, pods=resolved(workload.openb.pods)))
    if workload.dlrm is not None:
        workload = replace(workload, dlrm=replace(workload.dlrm, trace=resolved(workload.dlrm.trace)))
    if workload.simkube is not None:
        workload = replace(workload, simkube=TraceFile(resolved(workload.simkube.trace)))
    policies = {
        name: PolicyPart(resolved(policy.config), [_plugin_source(source, folder) for source in policy.plugins])
        for name, policy in scenario.policies.items()
    }
    return replace(
        scenario,
        cluster=cluster,
        workload=workload,
        config=resolved(scenario.config),
        plugins=[_plugin_source(source, folder) for source in scenario.plugins],
        policies=policies or {"default": PolicyPart()},
    )


def _plugin_source(source: str, folder: Path) -> str:
    """A file, or `package.module:Class`."""
    return str(folder / source) if source.endswith(".py") else source
