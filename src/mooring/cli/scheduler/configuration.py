"""The scheduler configuration from flags and files.

Input: flags, and which of them were given. Output: a `SchedulerConfiguration` and the registry of plugins; or
`InputError`.

    --config FILE              the file; flags of leader election override it; --kubeconfig counts if the file names
                               none, and contradicts it otherwise; other deprecated flags are ignored with a warning
    --policy-config-file FILE  an older Policy, if there is no --config; then flags as without a file
    neither                    the defaults of kube-scheduler, and every flag
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from mooring.api.yaml import YamlDocument, YamlError, load_document
from mooring.cli.errors import InputError, Problem, input_error
from mooring.cli.flags import FlagValue
from mooring.kit.entropy import system_entropy
from mooring.scheduler.catalogue import registry_with
from mooring.scheduler.config.load import encode_configuration
from mooring.scheduler.config.types import ConfigurationError, SchedulerConfiguration
from mooring.scheduler.config.validation import validate
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.loading import PluginFileError, enabled_if_unmentioned
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.policy import load_configuration_or_policy
from mooring.scheduler.queue.queueing_hints import registered_kinds

logger = logging.getLogger(__name__)

_LEADER_FLAGS = {
    "leader-elect": "leader_elect",
    "leader-elect-lease-duration": "lease_duration_s",
    "leader-elect-renew-deadline": "renew_deadline_s",
    "leader-elect-retry-period": "retry_period_s",
    "leader-elect-resource-lock": "resource_lock",
    "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}
_CLIENT_FLAGS = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_TOP_FLAGS = {"profiling": "enable_profiling", "contention-profiling": "enable_contention_profiling"}


def configuration_of(flags: Mapping[str, FlagValue], given: frozenset[str]) -> tuple[SchedulerConfiguration, Registry]:
    """Raises `InputError`."""
    file = str(flags["config"]) or str(flags["policy-config-file"])
    sources = flags["plugin"]
    assert isinstance(sources, tuple), f"--plugin is {sources!r}"
    document = read_configuration(file) if file else None
    return checked_configuration(file, document, sources, lambda found: _with_flags(found, flags, given))


def check_recordable(configuration: SchedulerConfiguration) -> None:
    """For --record. Raises `InputError`."""
    if configuration.extenders:
        raise input_error("--record: the configuration has extenders, whose answers are not recorded")


def checked_configuration(
    file: str,
    document: YamlDocument | None,
    sources: Iterable[str],
    change: Callable[[SchedulerConfiguration], SchedulerConfiguration] = lambda found: found,
) -> tuple[SchedulerConfiguration, Registry]:
    """The configuration of a file, or the defaults, with the plugins of these sources. Raises `InputError`.

    Everything that can be wrong with them is found here: the plugins are made as the scheduler makes them.
    """
    registry, added = _plugin_registry(sources)
    try:
        configuration = change(load_configuration_or_policy(document.data if document is not None else None))
        problems = validate(configuration)
        if problems:
            raise ConfigurationError(problems)
        configuration = enabled_if_unmentioned(configuration, added)
        engine = Engine(configuration, entropy=system_entropy(), registry=registry)
        registered_kinds(cycle.profile for cycle in engine.cycles.values())
        return configuration, registry
    except ConfigurationError as error:
        raise InputError(
            Problem(_where(file, document, problem.path), problem.text) for problem in error.problems
        ) from error
    except ValueError as error:
        raise input_error(str(error), file) from error


def write_configuration(configuration: SchedulerConfiguration, file: str) -> None:
    """Writes YAML with sorted keys. Raises `InputError`."""
    text = yaml.safe_dump(encode_configuration(configuration), sort_keys=True, allow_unicode=True)
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise input_error(f"cannot be written: {error.strerror or error}", file) from error


def _with_flags(
    configuration: SchedulerConfiguration, flags: Mapping[str, FlagValue], given: frozenset[str]
) -> SchedulerConfiguration:
    changed = replace(
        configuration, leader_election=replace(configuration.leader_election, **_chosen(_LEADER_FLAGS, flags, given))
    )
    if flags["config"]:
        return _with_kubeconfig(changed, flags, given)
    return replace(
        changed,
        client_connection=replace(changed.client_connection, **_chosen(_CLIENT_FLAGS, flags, given)),
        **_chosen(_TOP_FLAGS, flags, given),
    )


def _with_kubeconfig(
    configuration: SchedulerConfiguration, flags: Mapping[str, FlagValue], given: frozenset[str]
) -> SchedulerConfiguration:
    """A configuration file with `--kubeconfig`. kube-scheduler ignores the flag, and would talk to another cluster than
    the one that was named."""
    ignored = sorted((_CLIENT_FLAGS.keys() | _TOP_FLAGS.keys()) & given - {"kubeconfig"})
    if ignored:
        logger.warning("ignored, because --config is given: %s", ", ".join(f"--{name}" for name in ignored))
    named, requested = configuration.client_connection.kubeconfig, str(flags["kubeconfig"])
    if not requested or requested == named:
        return configuration
    if named:
        file = str(flags["config"])
        raise input_error(
            f"--kubeconfig {requested} contradicts clientConnection.kubeconfig: {named}; leave one out", file
        )
    return replace(configuration, client_connection=replace(configuration.client_connection, kubeconfig=requested))


def _chosen(names: Mapping[str, str], flags: Mapping[str, FlagValue], given: frozenset[str]) -> dict[str, Any]:
    return {field: flags[name] for name, field in names.items() if name in given}


def read_configuration(file: str) -> YamlDocument:
    """A configuration file as YAML or JSON. Raises `InputError`."""
    try:
        return load_document(Path(file).read_bytes(), file)
    except YamlError as error:
        raise input_error(f"cannot be read as YAML or JSON: {error.text}", f"{file}:{error.line}") from error
    except OSError as error:
        raise input_error(f"cannot be read: {error.strerror or error}", file) from error


def _where(file: str, document: YamlDocument | None, path: str) -> str:
    return f"{file}:{document.line_of(path)}" if document is not None else ""


def _plugin_registry(sources: Iterable[str]) -> tuple[Registry, list[str]]:
    """As `registry_with`. Raises `InputError`."""
    try:
        return registry_with(sources)
    except PluginFileError as error:
        raise input_error(str(error)) from error  # the text names the source
