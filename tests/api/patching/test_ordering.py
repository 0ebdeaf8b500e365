"""Merged items stand in the patch's order, the others around them as before."""

from __future__ import annotations

import pytest

from mooring.api.patching.errors import PatchError
from mooring.api.patching.ordering import check_against_order, identity, in_order, places_of


@pytest.mark.parametrize(
    ("items", "wanted", "before", "result"),
    [
        ("abc", "b", "abc", "abc"),
        ("abc", "cb", "abc", "acb"),
        ("abx", "x", "ab", "xab"),
        ("abcx", "bx", "abc", "abxc"),
        ("aab", "", "aab", "ab"),
        ("", "", "", ""),
    ],
)
def test_where_plain_values_stand(items: str, wanted: str, before: str, result: str) -> None:
    assert in_order(list(items), list(wanted), list(before), "") == list(result)


def test_of_items_with_the_same_name_the_first_place_counts() -> None:
    assert places_of([{"name": "a"}, {"name": 1}, {"name": "a"}], "name") == {"a": 0, 1: 1}


@pytest.mark.parametrize("name", [{}, []], ids=["an object", "a list"])
def test_a_name_is_a_plain_value(name: object) -> None:
    with pytest.raises(PatchError, match="merge key name is no plain value"):
        identity({"name": name}, "name")


@pytest.mark.parametrize(
    ("patch", "order"),
    [("", "abc"), ("b", "abc"), ("ac", "abc"), ("ab", "")],
    ids=["nothing is patched", "one of them", "some in order", "there is no order"],
)
def test_a_patch_that_fits_its_order(patch: str, order: str) -> None:
    check_against_order(list(patch), list(order), "")


@pytest.mark.parametrize(
    ("patch", "order"), [("x", "abc"), ("ba", "abc")], ids=["one that is not in it", "out of order"]
)
def test_a_patch_that_contradicts_its_order(patch: str, order: str) -> None:
    with pytest.raises(PatchError, match=r"doesn't match \$setElementOrder list"):
        check_against_order(list(patch), list(order), "")


def test_an_order_of_objects_is_an_order_of_names() -> None:
    check_against_order([{"name": "b"}, {"name": "a", "$patch": "delete"}], [{"name": "a"}, {"name": "b"}], "name")
    with pytest.raises(PatchError, match="does not contain declared merge key: name"):
        check_against_order([{"name": "b"}], [{"value": "b"}], "name")
    with pytest.raises(PatchError, match="expected a map"):
        check_against_order(["b"], [{"name": "b"}], "name")
