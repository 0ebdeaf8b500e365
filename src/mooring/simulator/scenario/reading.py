"""From a scenario file and the values of its parameters to a `Scenario`, or `ScenarioError` with file and line.

1. `${name}` in a text stands for a parameter: a value of `parameters`, or of `--set`.
2. A file name is relative to the scenario file. One that comes from `--set` is relative to the working directory.
3. `validate_scenario` checks the rules that fields have among each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from mooring.api.quantity import parse_quantity
from mooring.api.yaml import YamlDocument, YamlError, load_document
from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.fields import (
    APP,
    CHANGES,
    AutoscalerPart,
    DrainPart,
    FailPart,
    PodTemplatePart,
    PolicyPart,
    RolloutPart,
    ScalePart,
    Scenario,
    ScenarioEvent,
    TraceFile,
    UpgradePart,
    rate_per_h,
    seconds,
    seeds_of,
)

GZIP_MAGIC = b"\x1f\x8b"
_PARAMETER = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_PATH = re.compile(r" - at `(?:key in )?`?\$\.?([^`]*)`")


def read_scenario(path: Path, values: Mapping[str, str], level: str | None = None) -> Scenario:
    """The scenario of a file, with these values of parameters, at another level if one is given.

    Raises `ScenarioError`.
    """
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
    filled = _filled({**data, **({"level": level} if level is not None else {})}, known_values, document, "")
    try:
        scenario = msgspec.convert(filled, Scenario)
    except msgspec.ValidationError as error:
        text, _, _ = str(error).partition(" - at `")
        found = _PATH.search(str(error))
        place = found[1] if found is not None else ""
        raise ScenarioError(f"{path}:{document.line_of(place)}", f"{place}: {text}" if place else text) from error
    validate_scenario(scenario, Reporter(path, document))
    return with_files(scenario, lambda name: str(path.parent / name))


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


def with_files(scenario: Scenario, changed: Callable[[str], str]) -> Scenario:
    """The scenario with each name of a file changed."""

    def resolved(name: str) -> str:
        return changed(name) if name else ""

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
        name: PolicyPart(resolved(policy.config), [_plugin_source(source, changed) for source in policy.plugins])
        for name, policy in scenario.policies.items()
    }
    return replace(
        scenario,
        cluster=cluster,
        workload=workload,
        config=resolved(scenario.config),
        plugins=[_plugin_source(source, changed) for source in scenario.plugins],
        policies=policies or {"default": PolicyPart()},
    )


def _plugin_source(source: str, changed: Callable[[str], str]) -> str:
    """A file, or `package.module:Class`."""
    return changed(source) if source.endswith(".py") else source


# --- validation -----------------------------------------------------------------------------------------------


INTERVAL_S_MIN = 1.0
"""The shortest time between two samples, two occurrences of an event, and two scans of the autoscaler."""
OCCURRENCES_MAX = 1_000_000
"""Samples of a simulation, and occurrences of one event."""
PODS_MAX = 10_000_000
"""Pods of one workload."""
NAME_LENGTH_MAX = 50
"""At the cluster level. Controllers and numbers add to it, and a label has 63 characters."""
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_PERCENT = re.compile(r"(?:100|[0-9]{1,2})%")


def validate_scenario(scenario: Scenario, reporter: Reporter) -> None:
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
        reporter.check_interval("samples.every", scenario.samples.every, scenario.duration_s)
    try:
        seeds_of(scenario.seeds)
    except ValueError as error:
        raise reporter.error("seeds", str(error)) from error
    if scenario.level == "cluster":
        _validate_cluster_level(scenario, reporter)
    _validate_pools(scenario, reporter)
    _validate_autoscaler(scenario, reporter)
    _validate_pods(scenario, reporter)
    for number, event in enumerate(scenario.events):
        _validate_event(scenario, event, f"events[{number}]", reporter)


def _validate_pools(scenario: Scenario, reporter: Reporter) -> None:
    names: set[str] = set()
    for number, pool in enumerate(scenario.cluster.pools):
        place = f"cluster.pools[{number}]"
        if pool.name in names:
            raise reporter.error(f"{place}.name", f"{pool.name} is the name of another pool")
        names.add(pool.name)
        _validate_amounts({"cpu": pool.cpu, "memory": pool.memory}, place, reporter)
        _validate_amounts(pool.resources, f"{place}.resources", reporter)
        if pool.autoscale is not None:
            limits, place = pool.autoscale, f"{place}.autoscale"
            if not limits.min <= pool.count <= limits.max:
                text = f"count {pool.count} is not between min {limits.min} and max {limits.max}"
                raise reporter.error(place, text)
            reporter.check_duration(f"{place}.delay", limits.delay)


def _validate_pods(scenario: Scenario, reporter: Reporter) -> None:
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
        reporter.check_duration(f"{place}.startup", group.startup)
        _validate_budget(group, place, reporter)
        if APP in group.labels:
            raise reporter.error(f"{place}.labels", f"{APP} is the name of the pods; name another label")
        if group.rate:
            try:
                expected = rate_per_h(group.rate) * (scenario.duration_s or 0.0) / 3600
            except ValueError as error:
                raise reporter.error(f"{place}.rate", str(error)) from error
            if expected > PODS_MAX:
                raise reporter.error(f"{place}.rate", f"{expected:.0f} pods; at most {PODS_MAX}")


def _validate_autoscaler(scenario: Scenario, reporter: Reporter) -> None:
    settings, place = scenario.autoscaler, "autoscaler"
    if settings != AutoscalerPart() and not scenario.has_autoscaler:
        raise reporter.error(place, "no pool has autoscale: {max: …}")
    if scenario.has_autoscaler and not scenario.retry:
        raise reporter.error("retry", "pools with autoscale are of no use to pods that are not tried again")
    reporter.check_duration(f"{place}.scaleDownUnneededTime", settings.scale_down_unneeded_time)
    reporter.check_duration(f"{place}.scaleDownDelayAfterAdd", settings.scale_down_delay_after_add)
    reporter.check_interval(f"{place}.scanInterval", settings.scan_interval)
    if settings.expander == "price" and not all(pool.price for pool in scenario.cluster.pools if pool.autoscale):
        raise reporter.error(f"{place}.expander", "a pool with autoscale has no price")


def _validate_amounts(amounts: Mapping[str, str], place: str, reporter: Reporter) -> None:
    for name, text in amounts.items():
        try:
            parse_quantity(text)
        except ValueError as error:
            raise reporter.error(f"{place}.{name}", f"{text!r} is no quantity: {error}") from error


def _validate_budget(group: PodTemplatePart, place: str, reporter: Reporter) -> None:
    fields = {"minAvailable": group.min_available, "maxUnavailable": group.max_unavailable}
    given = {name: value for name, value in fields.items() if value is not None}
    if len(given) > 1:
        raise reporter.error(place, "wanted minAvailable or maxUnavailable, not both")
    for name, value in given.items():
        is_valid = value >= 0 if isinstance(value, int) else _PERCENT.fullmatch(value)
        if not is_valid:
            raise reporter.error(f"{place}.{name}", f"{value!r} is neither a number nor a share such as 25%")
        if not group.is_deployment and (name == "maxUnavailable" or isinstance(value, str)):
            raise reporter.error(f"{place}.{name}", "pods without a number of replicas can have a number minAvailable")


def _validate_cluster_level(scenario: Scenario, reporter: Reporter) -> None:
    openb = scenario.workload.openb
    if not scenario.retry:
        raise reporter.error("retry", "the scheduler of the cluster level always tries again")
    if openb is not None and openb.demand is not None:
        raise reporter.error("workload.openb.demand", "belongs to the engine level: pods arrive without time passing")
    if scenario.samples.demand_percent:
        raise reporter.error("samples.demandPercent", "belongs to the engine level")
    named = [(f"cluster.pools[{number}].name", pool.name) for number, pool in enumerate(scenario.cluster.pools)]
    named += [(f"workload.pods[{number}].name", group.name) for number, group in enumerate(scenario.workload.pods)]
    for place, name in named:
        if len(name) > NAME_LENGTH_MAX or not _NAME.fullmatch(name):
            wanted = f"wanted lower case letters, digits and -, at most {NAME_LENGTH_MAX}"
            raise reporter.error(place, f"{name!r} is no name of API objects; {wanted}")


def _validate_event(scenario: Scenario, event: ScenarioEvent, place: str, reporter: Reporter) -> None:
    reporter.check_duration(f"{place}.at", event.at)
    if event.every:
        reporter.check_interval(f"{place}.every", event.every, scenario.duration_s)
    found = event.change()
    if found is None:
        raise reporter.error(place, f"wanted exactly one of {', '.join(CHANGES[:-1])} and {CHANGES[-1]}")
    name, change = found
    place = f"{place}.{name}"
    if isinstance(change, ScalePart | RolloutPart):
        _validate_workload_change(scenario, change, place, reporter)
        return
    if change.pool and change.pool not in {pool.name for pool in scenario.cluster.pools}:
        raise reporter.error(f"{place}.pool", f"no pool is called {change.pool}")
    if isinstance(change, UpgradePart | DrainPart) and change.timeout:
        reporter.check_duration(f"{place}.timeout", change.timeout)
    if isinstance(change, UpgradePart):
        if change.delay:
            reporter.check_duration(f"{place}.delay", change.delay)
        return
    if bool(change.pool) == bool(change.nodes):
        raise reporter.error(place, "wanted either pool or nodes")
    if name == "add" and (not change.pool or not change.count):
        raise reporter.error(place, "wanted pool and count")
    if change.duration:
        if name not in ("fail", "cordon", "drain"):
            raise reporter.error(f"{place}.for", "belongs to fail, cordon and drain")
        reporter.check_duration(f"{place}.for", change.duration)
    if isinstance(change, FailPart) and change.mtbf:
        reporter.check_duration(f"{place}.mtbf", change.mtbf)
        if not seconds(change.mtbf):
            raise reporter.error(f"{place}.mtbf", "is 0")
        if not change.pool or change.count is not None or event.every:
            raise reporter.error(place, "random failures want pool and mtbf, and neither count nor every")


def _validate_workload_change(
    scenario: Scenario, change: ScalePart | RolloutPart, place: str, reporter: Reporter
) -> None:
    group = next((group for group in scenario.workload.pods if group.name == change.workload), None)
    if group is None or group.replicas is None:
        raise reporter.error(place, f"no pods with replicas are called {change.workload}")
    if scenario.level == "cluster" and not group.is_deployment:
        text = f"{change.workload} is no Deployment at the cluster level: its pods are bare or have a lifetime"
        raise reporter.error(place, text)
    if isinstance(change, RolloutPart):
        if scenario.level != "cluster":
            raise reporter.error(place, "only the cluster level has rollouts; set level: cluster, or --level cluster")
        if not (change.cpu or change.memory or change.labels) or APP in change.labels:
            raise reporter.error(place, f"wanted cpu, memory or labels, and the label {APP} cannot change")
        amounts = {"cpu": change.cpu or group.cpu, "memory": change.memory or group.memory}
        _validate_amounts(amounts, place, reporter)


class Reporter:
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

    def check_interval(self, place: str, text: str, duration_s: float | None = None) -> None:
        """With a duration, what happens in this interval happens at most `OCCURRENCES_MAX` times."""
        self.check_duration(place, text)
        if seconds(text) < INTERVAL_S_MIN:
            raise self.error(place, f"wanted at least {INTERVAL_S_MIN:g} s")
        times = (duration_s or 0.0) / seconds(text)
        if times > OCCURRENCES_MAX:
            raise self.error(place, f"{times:.0f} times in {duration_s:.0f} s; at most {OCCURRENCES_MAX}")
