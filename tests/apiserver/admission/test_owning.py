"""Parts are copied before they are changed."""

from __future__ import annotations

from mooring.apiserver.admission.owning import own_items, own_part


def test_a_part_is_changed_without_changing_what_shares_it() -> None:
    shared = {"a": 1}
    document = {"spec": shared}
    own_part(document, "spec")["b"] = 2
    assert (shared, document) == ({"a": 1}, {"spec": {"a": 1, "b": 2}})


def test_a_missing_part_becomes_an_empty_one() -> None:
    document: dict[str, object] = {}
    own_part(document, "spec")
    assert document == {"spec": {}}


def test_items_are_changed_without_changing_what_shares_them() -> None:
    shared = [{"name": "a"}]
    document = {"items": shared}
    own_items(document, "items")[0]["name"] = "b"
    assert (shared, document) == ([{"name": "a"}], {"items": [{"name": "b"}]})
