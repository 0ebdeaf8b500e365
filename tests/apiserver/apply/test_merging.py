"""One document laid over another."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.apply.merging import merged
from mooring.apiserver.apply.typed import GrainError
from tests.apiserver.apply.builders import THING, thing


@pytest.mark.parametrize(
    ("live", "applied", "result"),
    [
        pytest.param({"text": "a"}, {"count": 1}, {"text": "a", "count": 1}, id="both"),
        pytest.param({"text": "a"}, {"text": "b"}, {"text": "b"}, id="the applied value wins"),
        pytest.param({"text": "a"}, {"text": None}, {"text": None}, id="null is a value"),
        pytest.param({"words": {"a": "1"}}, {"words": {"b": "2"}}, {"words": {"a": "1", "b": "2"}}, id="maps"),
        pytest.param({"words": {"a": "1"}}, {"words": None}, {"words": {"a": "1"}}, id="null keeps a map"),
        pytest.param({"words": {"a": "1"}}, {"words": {}}, {"words": {"a": "1"}}, id="an empty map changes nothing"),
        pytest.param({"words": {}}, {"words": None}, {"words": None}, id="null for an empty one"),
        pytest.param({"pair": {"left": "a"}}, {"pair": {"right": "b"}}, {"pair": {"right": "b"}}, id="atomic maps"),
        pytest.param({"whole": ["a"]}, {"whole": ["b"]}, {"whole": ["b"]}, id="atomic lists"),
        pytest.param({"set": ["a"]}, {"set": None}, {"set": ["a"]}, id="null keeps a set"),
        pytest.param(
            {"ports": [{"port": 1, "note": "x"}]},
            {"ports": [{"port": 1, "protocol": "TCP"}]},
            {"ports": [{"port": 1, "note": "x", "protocol": "TCP"}]},
            id="items with the same keys",
        ),
        pytest.param({"free": {"a": 1}}, {"free": {"a": {"b": 1}}}, {"free": {"a": {"b": 1}}}, id="another sort"),
    ],
)
def test_values(live: dict[str, Any], applied: dict[str, Any], result: dict[str, Any]) -> None:
    assert merged(THING.root, thing(**live), thing(**applied)) == thing(**result)


@pytest.mark.parametrize(
    ("live", "applied", "result"),
    [
        ("abc", "c", "abc"),
        ("abc", "d", "abcd"),
        ("abc", "ca", "bca"),
        ("abc", "xb", "axbc"),
        ("abcd", "dxa", "bcdxa"),
        ("", "ba", "ba"),
        ("aab", "b", "aab"),
        ("aab", "a", "ab"),
    ],
)
def test_shared_items_stand_as_applied(live: str, applied: str, result: str) -> None:
    found = merged(THING.root, thing(set=list(live)), thing(set=list(applied)))
    assert "".join(found["spec"]["set"]) == result


def test_neither_document_is_changed() -> None:
    live, applied = thing(words={"a": "1"}, set=["x"]), thing(words={"b": "2"}, set=["y"])
    before = str((live, applied))
    merged(THING.root, live, applied)
    assert str((live, applied)) == before


def test_a_live_item_without_keys_is_an_error() -> None:
    with pytest.raises(GrainError, match="element 0: associative list with keys may not have a null element"):
        merged(THING.root, thing(ports=[None]), thing(ports=[{"port": 1}]))
