"""The policies of a scenario: configurations and plugin files, as the scheduler takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mooring.api.yaml import YamlDocument, YamlError, load_document
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.catalogue import registry_with
from mooring.scheduler.config import ConfigurationError, SchedulerConfiguration
from mooring.scheduler.cycle.schedule_pod import TieBreak
from mooring.scheduler.framework.loading import PluginFileError, enabled_if_unmentioned
from mooring.scheduler.framework.registry import BadPluginError, Registry
from mooring.scheduler.policy import load_configuration_or_policy
from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.fields import Scenario


@contextmanager
def loaded_policy(scenario: Scenario, policy: str) -> Iterator[tuple[SchedulerConfiguration, Registry]]:
    """The configuration and the plugins of a policy. Errors in them, also in the block, become `ScenarioError`."""
    part = scenario.policies[policy]
    config = part.config or scenario.config
    document: YamlDocument | None = None
    try:
        document = load_document(Path(config).read_bytes(), config) if config else None
        registry, names = registry_with([*scenario.plugins, *part.plugins])
        configuration = load_configuration_or_policy(document.data if document is not None else None)
        yield enabled_if_unmentioned(configuration, names), registry
    except YamlError as error:
        raise ScenarioError(f"{config}:{error.line}", f"cannot be read as YAML: {error.text}") from error
    except OSError as error:
        raise ScenarioError(config, f"cannot be read: {error.strerror or error}") from error
    except ConfigurationError as error:
        first = error.problems[0]
        where = f"{config}:{document.line_of(first.path)}" if document is not None else ""
        raise ScenarioError(where, first.text) from error
    except (PluginFileError, BadPluginError) as error:
        raise ScenarioError("", f"policy {policy}: {error}") from error
    except ValueError as error:
        raise ScenarioError(config, str(error)) from error


def smallest_name(columns: Columns) -> TieBreak:
    """Of equally good nodes, the one with the smallest name."""

    def choose(rows: Sequence[int] | Int64s) -> int:
        names = columns.node_names
        return min((int(row) for row in rows), key=names.__getitem__)

    return choose
