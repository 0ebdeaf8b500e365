"""Field sets behave like sets of paths; mostly property tests."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.apiserver.apply import field_set
from mooring.apiserver.apply.field_set import FieldSet, Ignored, Path, set_of, without_ignored
from mooring.apiserver.apply.managers import read_fields
from tests.apiserver.apply.builders import fields, shown

ELEMENTS = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"port":9}', 'k:{"port":80}', 'v:"x"'])
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS = st.sets(PATHS, max_size=12)


def paths_of(found: FieldSet) -> set[Path]:
    return set(field_set.paths(found))


def made(paths: Iterable[Path]) -> FieldSet:
    return set_of(sorted(paths))


@given(SETS)
def test_a_field_set_has_the_paths_it_was_made_of(paths: set[Path]) -> None:
    assert paths_of(made(paths)) == paths
    assert all(field_set.has(made(paths), path) for path in paths)


@given(SETS)
def test_reading_a_written_field_set_changes_nothing(paths: set[Path]) -> None:
    written = made(paths)
    read = read_fields(written)
    assert read == written
    assert str(read) == str(written), "the order is the same"


@given(SETS, SETS)
def test_union_difference_and_intersection_are_those_of_sets(left: set[Path], right: set[Path]) -> None:
    assert paths_of(field_set.union(made(left), made(right))) == left | right
    assert paths_of(field_set.difference(made(left), made(right))) == left - right
    assert paths_of(field_set.intersection(made(left), made(right))) == left & right


@given(SETS, SETS)
def test_equal_field_sets_have_one_representation(left: set[Path], right: set[Path]) -> None:
    for found, expected in (
        (field_set.union(made(left), made(right)), left | right),
        (field_set.difference(made(left), made(right)), left - right),
        (field_set.intersection(made(left), made(right)), left & right),
    ):
        assert str(found) == str(made(expected))


@given(SETS, SETS)
def test_operations_leave_their_operands_alone(left: set[Path], right: set[Path]) -> None:
    one, other = made(left), made(right)
    before = str(one), str(other)
    field_set.union(one, other)
    field_set.difference(one, other)
    field_set.intersection(one, other)
    field_set.without_below(one, other)
    assert (str(one), str(other)) == before


@given(SETS, SETS)
def test_without_below_removes_branches(left: set[Path], right: set[Path]) -> None:
    expected = {path for path in left if not any(path[: len(cut)] == cut for cut in right)}
    found = field_set.without_below(made(left), made(right))
    assert paths_of(found) == expected
    assert str(found) == str(made(expected))


@given(SETS)
def test_has_is_false_for_paths_outside_of_the_field_set(paths: set[Path]) -> None:
    assert not field_set.has(made(paths), ("f:z",))
    assert not field_set.has(made(paths), ())


@pytest.mark.parametrize(
    ("found", "json"),
    [
        pytest.param(fields("data"), {"f:data": {}}, id="a leaf"),
        pytest.param(fields("data", "data k"), {"f:data": {".": {}, "f:k": {}}}, id="a field and a field below it"),
        pytest.param(fields("data k"), {"f:data": {"f:k": {}}}, id="only a field below"),
    ],
)
def test_a_field_set_is_its_json(found: FieldSet, json: FieldSet) -> None:
    assert found == json


def test_paths_lists_members_of_a_level_before_paths_below_it() -> None:
    found = fields("b", "a x", "c", "a")
    assert list(field_set.paths(found)) == [("f:a",), ("f:b",), ("f:c",), ("f:a", "f:x")]


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        pytest.param((), [".metadata.labels", ".spec.nodeName", ".status.phase"], id="nothing"),
        pytest.param((("status",),), [".metadata.labels", ".spec.nodeName"], id="a branch"),
        pytest.param((("spec",), ("metadata", "labels")), [".status.phase"], id="two branches"),
        pytest.param((("other",),), [".metadata.labels", ".spec.nodeName", ".status.phase"], id="an absent branch"),
    ],
)
def test_without_ignored_removes_ignored_branches(ignored: Ignored, left: list[str]) -> None:
    assert shown(without_ignored(fields("metadata labels", "spec nodeName", "status phase"), ignored)) == left
