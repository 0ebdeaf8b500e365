"""From a scenario file and the values of its parameters to a `Scenario`, or `ScenarioError` with file and line.

1. `${name}` in a text stands for a parameter: a value of `parameters`, or of `--set`.
2. A file name is relative to the scenario file. One that comes from `--set` is relative to the working directory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from mooring.api.yaml import YamlDocument, YamlError, load_document
from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.fields import PolicyPart, Scenario, TraceFile
from mooring.simulator.scenario.validation import Reporter, validate_scenario

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
