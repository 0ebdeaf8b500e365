"""A merge patch takes away what is null, merges objects, and replaces everything else."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.patching.errors import BAD_REQUEST, JsonDict, PatchError
from mooring.api.patching.merge_patch import apply_merge_patch


@pytest.mark.parametrize(
    ("current", "patch", "wanted"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="a new field is added"),
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="a field is replaced"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null takes a field away"),
        pytest.param({"a": 1}, {"b": None}, {"a": 1}, id="null of a field that is not there does nothing"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="objects are merged"),
        pytest.param({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}, id="a list replaces an object"),
        pytest.param({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="an object replaces a list"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="a list replaces a list"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="what is new comes without its nulls"),
        pytest.param({}, {"a": [{"b": None}, None]}, {"a": [{}, None]}, id="also inside of lists"),
        pytest.param({"a": None}, {"a": {"b": None}}, {"a": {}}, id="a null in the object counts as absent"),
    ],
)
def test_what_a_patch_makes_of_an_object(current: JsonDict, patch: JsonDict, wanted: JsonDict) -> None:
    assert apply_merge_patch(current, patch) == wanted


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        pytest.param(None, "Invalid JSON Patch", id="null"),
        pytest.param(
            [],
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="a list",
        ),
        pytest.param(
            1,
            "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}",
            id="a number",
        ),
    ],
)
def test_what_is_no_merge_patch(patch: object, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        apply_merge_patch({}, patch)
    assert (str(caught.value), caught.value.code) == (message, BAD_REQUEST)


plain = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
names = st.sampled_from("abc")
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
objects = st.dictionaries(names, values, max_size=3)
solid_values = st.recursive(
    plain.filter(lambda value: value is not None),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
)
solid_objects = st.dictionaries(names, solid_values, max_size=3)


@given(objects, objects)
def test_a_patch_changes_neither_the_object_nor_itself(current: JsonDict, patch: JsonDict) -> None:
    before = copy.deepcopy((current, patch))
    apply_merge_patch(current, patch)
    assert (current, patch) == before


@given(objects, objects)
def test_a_patch_applied_twice_is_the_patch_applied_once(current: JsonDict, patch: JsonDict) -> None:
    once = apply_merge_patch(current, patch)
    assert apply_merge_patch(once, patch) == once


@given(solid_objects, solid_objects)
def test_the_difference_of_two_objects_leads_from_one_to_the_other(one: JsonDict, other: JsonDict) -> None:
    assert apply_merge_patch(one, difference(one, other)) == other


def difference(one: JsonDict, other: JsonDict) -> JsonDict:
    patch: JsonDict = {name: None for name in one if name not in other}
    for name, value in other.items():
        before = one.get(name)
        patch[name] = difference(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return patch
