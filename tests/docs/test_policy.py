"""docs/policy.md: every old name and its plugin, every argument and every example are those of the code."""

from __future__ import annotations

import re

import msgspec
import pytest

from mooring.api.yaml import load_document
from mooring.kit.entropy import Entropy
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config.types import NO_PLUGINS, ExtensionPoint
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
from tests.docs.pages import page

PAGE = page("docs/policy.md")


def table(section: str) -> list[tuple[str, ...]]:
    return [row.cells for row in PAGE.rows if row.section == section]


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


def test_strategies_are_named() -> None:
    remarks = {codes(row[0])[0]: row[3] for row in table("Priorities")}
    unnamed = [name for name, strategy in STRATEGIES.items() if f"`{strategy}`" not in remarks[name]]
    assert unnamed == ["RequestedToCapacityRatio"], "its row refers to the next one"
    after_the_table = PAGE.prose.partition("## Priorities")[2].partition("## Arguments")[0]
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
    said = set(codes(PAGE.prose.partition("## Differences")[2]))
    assert set(enabled) - mandatory <= said
    assert set(ALWAYS) <= said


def test_the_maximum_weight_is_named() -> None:
    assert f"from 1 to {WEIGHT_MAX}" in PAGE.prose


# --- the examples -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", PAGE.blocks("yaml"), ids=["policy", "configuration"])
def test_examples_load(example: str) -> None:
    configuration = load_configuration_or_policy(load_document(example).data)
    assert configuration.profiles[0].plugins.multi_point != NO_PLUGINS
    assert Engine(configuration, entropy=Entropy(seed=1)).cycles
