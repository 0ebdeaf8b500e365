"""docs/configuration.md and docs/policy.md: fields, defaults, plugins and arguments are those of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest

from mooring.api.durations import format_duration
from mooring.api.yaml import load_document
from mooring.kit.entropy import Entropy
from mooring.scheduler.catalogue import BUILT_IN, default_registry
from mooring.scheduler.config import load_configuration, types
from mooring.scheduler.config.profiles import DEFAULT_PLUGINS
from mooring.scheduler.config.types import ARGUMENTS, NO_PLUGINS, ConfigObject, ExtensionPoint
from mooring.scheduler.engine import Engine
from mooring.scheduler.policy import load_configuration_or_policy
from mooring.scheduler.policy.conversion import ALWAYS
from mooring.scheduler.policy.types import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    MANDATORY_PREDICATES,
    PREDICATES,
    PRIORITIES,
    STRATEGIES,
    STRATEGY_PLUGINS,
    WEIGHT_MAX,
    NodeLabelArgs,
    Policy,
    PredicateArgument,
    PriorityArgument,
    ServiceAffinityArgs,
)
from tests.docs.pages import Row, all_pages, page

PAGE = page("docs/configuration.md")
EXAMPLES = [
    pytest.param(block, id=f"{each.name}-{number}")
    for each in all_pages()
    for number, block in enumerate(each.blocks("yaml"))
    if "KubeSchedulerConfiguration" in block
]


def rows_of(section: str) -> list[Row]:
    return [row for row in PAGE.rows if row.section == section]


# Fields


def test_every_field_has_a_row_with_its_default() -> None:
    written = {row.cells[0].strip("`"): row.cells[1].strip("`") for row in rows_of("Fields")}
    assert set(written) == {path for path, _ in _fields(types.SchedulerConfiguration)} | set(_fields_of_profiles())
    for path, field in _fields(types.SchedulerConfiguration):
        shown = _shown_default(field)
        if shown is not None:
            assert written[path] == shown, path


def _fields(kind: type[ConfigObject], before: str = "") -> Iterator[tuple[str, msgspec.structs.FieldInfo]]:
    """The fields of a configuration, those of its sections with their path."""
    for field in msgspec.structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, ConfigObject):
            yield from _fields(field.type, f"{before}{field.encode_name}.")
        else:
            yield before + field.encode_name, field


def _fields_of_profiles() -> list[str]:
    return [f"profiles[].{field.encode_name}" for field in msgspec.structs.fields(types.KubeSchedulerProfile)]


def _shown_default(field: msgspec.structs.FieldInfo) -> str | None:
    """A default as the page writes it; None where the page uses words."""
    match field.default:
        case bool():
            return "true" if field.default else "false"
        case float() if field.name.endswith("_s"):
            return format_duration(field.default)
        case int() | float():
            return f"{field.default:g}"
        case str():
            return field.default or '""'
        case None:
            return "none"
        case _:
            return None


@pytest.mark.parametrize("kind", [types.ExtenderConfiguration, types.ExtenderTLSConfig, types.ExtenderManagedResource])
def test_every_field_of_extenders_is_named(kind: type[ConfigObject]) -> None:
    assert [f.encode_name for f in msgspec.structs.fields(kind) if f.encode_name not in PAGE.codes] == []


# Plugins and points


def test_the_table_of_plugins_is_that_of_the_code() -> None:
    implements = default_registry().implements
    served = {
        plugin.name: ", ".join(f"`{p.config_field}`" for p in ExtensionPoint if implements(plugin.name, p))
        for plugin in BUILT_IN
    }
    assert [row.cells for row in rows_of("Plugins")] == [
        (f"`{plugin.name}`", served[plugin.name], str(plugin.weight or "–")) for plugin in DEFAULT_PLUGINS
    ]


def test_every_extension_point_has_a_row() -> None:
    assert [row.cells[0].strip("`") for row in rows_of("Extension points")] == [p.config_field for p in ExtensionPoint]


# Arguments


def test_every_argument_has_a_row_with_its_default() -> None:
    written: dict[str, dict[str, str]] = {}
    plugin = ""
    for row in rows_of("Arguments"):
        plugin = row.cells[0].strip("`") or plugin
        written.setdefault(plugin, {})[row.cells[1].strip("`")] = row.cells[2].strip("`")
    assert {name: list(arguments) for name, arguments in written.items()} == {
        name: [field.encode_name for field in msgspec.structs.fields(kind)] for name, kind in ARGUMENTS.items()
    }
    for name, kind in ARGUMENTS.items():
        for field in msgspec.structs.fields(kind):
            shown = "[]" if field.default == () else _shown_default(field)
            if shown is not None:
                assert written[name][field.encode_name] == shown, f"{name}.{field.encode_name}"


def test_strategies_are_named() -> None:
    assert {"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"} <= set(PAGE.codes)


# Examples


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_load(example: str) -> None:
    configuration = load_configuration(load_document(example).data)
    known = {plugin.name for plugin in BUILT_IN}
    if all(name in known for profile in configuration.profiles for name in profile.plugins.enabled_names()):
        Engine(configuration, entropy=Entropy(seed=1))


def test_there_are_examples() -> None:
    assert len([block for block in PAGE.blocks("yaml") if "KubeSchedulerConfiguration" in block]) >= 3


POLICY_PAGE = page("docs/policy.md")


def table(section: str) -> list[tuple[str, ...]]:
    return [row.cells for row in POLICY_PAGE.rows if row.section == section]


def codes(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


# --- the tables -------------------------------------------------------------------------------------------------


def test_every_field_has_a_row() -> None:
    assert [codes(row[0])[0] for row in table("Fields")] == [f.encode_name for f in msgspec.structs.fields(Policy)]


def test_every_predicate_has_a_row_with_its_plugins_in_the_order_of_the_code() -> None:
    written = [(codes(row[0])[0], codes(row[1])) for row in table("Predicates")]
    assert written == list(PREDICATES.items())


def test_default_and_mandatory_predicates_are_marked() -> None:
    marks = {codes(row[0])[0]: re.split("[,;] ", row[2]) for row in table("Predicates")}
    assert {name for name, said in marks.items() if "default" in said} == set(DEFAULT_PREDICATES)
    assert {name for name, said in marks.items() if "mandatory" in said} == set(MANDATORY_PREDICATES)


def test_every_priority_has_a_row_with_its_plugin() -> None:
    written = {codes(row[0])[0]: codes(row[1])[0] if codes(row[1]) else None for row in table("Priorities")}
    assert written == dict(PRIORITIES)
    assert list(written) == sorted(written)


def test_default_weights_are_those_of_the_code() -> None:
    written = {codes(row[0])[0]: int(row[2]) for row in table("Priorities") if row[2] != "–"}
    assert written == dict(DEFAULT_PRIORITIES)


def test_strategies_of_priorities_are_named() -> None:
    remarks = {codes(row[0])[0]: row[3] for row in table("Priorities")}
    unnamed = [name for name, strategy in STRATEGIES.items() if f"`{strategy}`" not in remarks[name]]
    assert unnamed == ["RequestedToCapacityRatio"], "its row refers to the next one"
    after_the_table = POLICY_PAGE.prose.partition("## Priorities")[2].partition("## Arguments")[0]
    assert set(STRATEGY_PLUGINS.values()) <= set(codes(after_the_table))


def test_every_argument_has_a_row() -> None:
    written = {(codes(row[0])[0], row[1]) for row in table("Arguments")}
    assert written == {
        *((field.encode_name, "predicate") for field in msgspec.structs.fields(PredicateArgument)),
        *((field.encode_name, "priority") for field in msgspec.structs.fields(PriorityArgument)),
    }
    become = {name for row in table("Arguments") for name in codes(row[3])}
    own = {f.encode_name for kind in (NodeLabelArgs, ServiceAffinityArgs) for f in msgspec.structs.fields(kind)}
    assert own <= become


def test_the_points_of_removed_plugins() -> None:
    implements = default_registry().implements
    for plugin, points, _ in table("Removed plugins"):
        (name,) = codes(plugin)
        assert codes(points) == tuple(p.config_field for p in ExtensionPoint if implements(name, p)), name


def test_plugins_that_are_always_on_are_named() -> None:
    nothing_asked = load_configuration_or_policy(
        {"apiVersion": "v1", "kind": "Policy", "predicates": [], "priorities": []}
    )
    enabled = nothing_asked.profiles[0].plugins.enabled_names()
    mandatory = {plugin for name in MANDATORY_PREDICATES for plugin in PREDICATES[name]}
    said = set(codes(POLICY_PAGE.prose.partition("## Differences")[2]))
    assert set(enabled) - mandatory <= said
    assert set(ALWAYS) <= said


def test_the_maximum_weight_is_named() -> None:
    assert f"from 1 to {WEIGHT_MAX}" in POLICY_PAGE.prose


# --- the examples -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", POLICY_PAGE.blocks("yaml"), ids=["policy", "configuration"])
def test_policy_examples_load(example: str) -> None:
    configuration = load_configuration_or_policy(load_document(example).data)
    assert configuration.profiles[0].plugins.multi_point != NO_PLUGINS
    assert Engine(configuration, entropy=Entropy(seed=1)).cycles
