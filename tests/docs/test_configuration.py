"""docs/configuration.md: its fields, defaults, plugins and arguments are those of the code."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from mooring.api.durations import format_duration
from mooring.api.yaml import load_document
from mooring.kit.entropy import Entropy
from mooring.scheduler.catalogue import BUILT_IN, default_registry
from mooring.scheduler.config import load_configuration, types
from mooring.scheduler.config.profiles import DEFAULT_PLUGINS
from mooring.scheduler.config.types import ARGUMENTS, ConfigObject, ExtensionPoint
from mooring.scheduler.engine import Engine
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
