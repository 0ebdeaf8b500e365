"""Templates: holes are filled, numbers stay numbers, and the same seed gives the same objects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.templates import Manifest, Template, TemplateError, Value, Variable, merged
from mooring.kit.entropy import Entropy

VALUES: dict[str, Value] = {"index": 7, "zone": "zone-a"}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="xyz", max_size=2), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("manifest", "filled"),
    [
        pytest.param({"name": "node-{index}"}, {"name": "node-7"}, id="a hole in a text becomes text"),
        pytest.param({"weight": "{index}"}, {"weight": 7}, id="a text that is one hole becomes the value itself"),
        pytest.param({"at": "{zone}/{index}"}, {"at": "zone-a/7"}, id="a text may have several holes"),
        pytest.param({"a": [{"b": ["{zone}", 1]}]}, {"a": [{"b": ["zone-a", 1]}]}, id="holes lie at any depth"),
        pytest.param({"cpu": 4, "gpu": None}, {"cpu": 4, "gpu": None}, id="what has no hole stays"),
        pytest.param({"{index}": 1}, {"{index}": 1}, id="keys are never filled"),
    ],
)
def test_filling(manifest: Manifest, filled: Manifest) -> None:
    assert Template(manifest, tuple(VALUES)).fill(VALUES) == filled


def test_parts_without_holes_are_shared() -> None:
    template = Template({"name": "{index}", "spec": {"containers": []}}, ("index",))
    assert template.fill({"index": 1})["spec"] is template.fill({"index": 2})["spec"]


def test_filling_leaves_the_template_alone() -> None:
    template = Template({"labels": {"app": "app-{index}"}}, ("index",))
    assert [template.fill({"index": index})["labels"] for index in (1, 2)] == [{"app": "app-1"}, {"app": "app-2"}]


def test_a_hole_that_nobody_fills_is_told_when_the_template_is_read() -> None:
    with pytest.raises(TemplateError, match=r"'node-\{nmae\}' asks for \{nmae\}, but there is only index, name"):
        Template({"name": "node-{nmae}"}, ("index", "name"))


@pytest.mark.parametrize(
    ("base", "patch", "result"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="new fields are added"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="mappings are merged"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null takes a field away"),
        pytest.param({}, {"a": None}, {}, id="null for a field that is not there changes nothing"),
        pytest.param({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}, id="a mapping replaces what is none"),
    ],
)
def test_merging(base: object, patch: object, result: object) -> None:
    assert merged(base, patch) == result


@given(st.dictionaries(st.text(alphabet="xyz", max_size=2), JSON, max_size=4))
def test_merging_nothing_changes_nothing(base: dict[str, object]) -> None:
    assert merged(base, {}) == base


@pytest.mark.parametrize(
    ("variable", "values"),
    [
        pytest.param(Variable(cycle=("a", "b")), ["a", "b", "a", "b", "a", "b"], id="a list in turn"),
        pytest.param(Variable(cycle=4), [0, 1, 2, 3, 0, 1], id="numbers in turn"),
        pytest.param(Variable(block=2), [0, 0, 1, 1, 2, 2], id="blocks of a size"),
        pytest.param(Variable(block_per_node=0.3), [0, 0, 0, 1, 1, 1], id="blocks by the number of nodes"),
        pytest.param(Variable(block_per_node=0.001), [0, 1, 2, 3, 4, 5], id="a block has at least one object"),
        pytest.param(Variable(choose=("only",)), ["only"] * 6, id="one of a list"),
        pytest.param(Variable(draw=(3, 3)), [3] * 6, id="both ends of a range are included"),
    ],
)
def test_values_follow_from_the_index(variable: Variable, values: list[Value]) -> None:
    value_at = variable.sequence(Entropy(1), node_count=10)
    assert [value_at(index) for index in range(6)] == values


def test_drawn_numbers_stay_in_their_range_and_can_be_had_again() -> None:
    draws = [[Variable(draw=(5, 9)).sequence(Entropy(3), 1)(index) for index in range(50)] for _ in range(2)]
    assert draws[0] == draws[1]
    assert set(draws[0]) <= {5, 6, 7, 8, 9}


@pytest.mark.parametrize(
    ("variable", "found"),
    [
        pytest.param(Variable(), "none", id="no rule"),
        pytest.param(Variable(cycle=2, block=3), "cycle, block", id="two rules"),
    ],
)
def test_a_variable_has_exactly_one_rule(variable: Variable, found: str) -> None:
    with pytest.raises(TemplateError, match=f"exactly one rule, found {found}"):
        variable.sequence(Entropy(1), node_count=1)
