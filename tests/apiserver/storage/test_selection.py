"""Selectors: how they are parsed, and how encoded objects are matched by the selected fields."""

from __future__ import annotations

import msgspec
import pytest

from mooring.apiserver.storage.selection import (
    FieldTerm,
    check_selectors,
    matcher_of,
    matcher_of_selection,
    parse_field_selector,
)
from mooring.client.errors import BadRequestError
from mooring.client.interface import EVERYTHING, Selection

WEB = {
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"nodeName": "n1", "hostNetwork": True, "priority": 7, "odd key": {"f:x": "y"}},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("", (), id="nothing"),
        pytest.param("a.b=c", (FieldTerm("a.b", "c", True),), id="equal"),
        pytest.param(
            "a==c,b!=d", (FieldTerm("a", "c", True), FieldTerm("b", "d", False)), id="equal twice, and not equal"
        ),
        pytest.param("a=,b!=", (FieldTerm("a", "", True), FieldTerm("b", "", False)), id="empty values"),
        pytest.param(r"a=x\,y\=z\\", (FieldTerm("a", r"x,y=z" + "\\", True),), id="escaped characters"),
        pytest.param(",a=b,,", (FieldTerm("a", "b", True),), id="empty terms are ignored"),
    ],
)
def test_field_selectors_are_parsed(text: str, terms: tuple[FieldTerm, ...]) -> None:
    assert parse_field_selector(text) == terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a", "invalid selector: 'a'; can't understand 'a'", id="no operator"),
        pytest.param(r"a=b\c", r"invalid field selector: invalid escape sequence: \c", id="an unknown escape"),
        pytest.param("a=b=c", "invalid field selector: unescaped character in value: 61", id="two operators"),
    ],
)
def test_an_invalid_field_selector_is_rejected(text: str, words: str) -> None:
    with pytest.raises(BadRequestError) as refusal:
        parse_field_selector(text)
    assert str(refusal.value) == words


@pytest.mark.parametrize(
    ("labels", "fields", "is_selected"),
    [
        pytest.param("app=web", "", True, id="the label"),
        pytest.param("app!=web", "", False, id="not the label"),
        pytest.param("", "metadata.name=web,spec.nodeName=n1", True, id="both fields"),
        pytest.param("", "metadata.name=web,spec.nodeName=n2", False, id="one of two fields"),
        pytest.param("app", "status.phase!=Failed", True, id="a label and a field"),
        pytest.param("", "spec.hostNetwork=true", True, id="a flag"),
        pytest.param("", "spec.unschedulable=false", True, id="a flag that is absent is false"),
        pytest.param("", "spec.priority=7", True, id="a number"),
        pytest.param("", "spec.nowhere=", True, id="an absent field is empty"),
        pytest.param("", "nowhere.at.all!=x", True, id="an absent path differs from a value"),
        pytest.param("", "spec.nodeName.deeper=", True, id="a path through a string is empty"),
        pytest.param("app=web", "spec.nodeName.deeper=x", False, id="a path through a string matches no value"),
        pytest.param("", "status=", True, id="an object is matched as empty"),
        pytest.param("", "spec.nowhere|status.phase=Running", True, id="the second of two paths"),
        pytest.param("", "nowhere.at.all|status.phase=Running", True, id="the first of two paths is not there"),
        pytest.param("", "spec.nodeName|status.phase=Running", False, id="the first of two paths has a value"),
        pytest.param(
            "", "spec.nodeName.deeper|status.phase=Running", True, id="the first of two paths leads through a string"
        ),
        pytest.param("", "spec.nowhere|status.nowhere=", True, id="neither path has a value"),
        pytest.param("", "spec.odd key.f:x=y", True, id="names that are no Python identifiers"),
    ],
)
def test_a_matcher_selects_objects_by_labels_and_fields(labels: str, fields: str, is_selected: bool) -> None:
    matcher = matcher_of(labels, fields)
    assert matcher is not None
    assert matcher.matches(msgspec.json.encode(WEB)) is is_selected


@pytest.mark.parametrize(
    "plain",
    [
        pytest.param({}, id="an empty object"),
        pytest.param({"metadata": None, "spec": None}, id="nulls"),
        pytest.param({"metadata": {"labels": None}, "spec": []}, id="a null and a list"),
        pytest.param({"metadata": "text", "spec": 5}, id="scalars"),
    ],
)
def test_a_field_of_an_unexpected_type_is_matched_as_absent(plain: object) -> None:
    raw = msgspec.json.encode(plain)
    absent, present = matcher_of("!app", "spec.nodeName="), matcher_of("app", "spec.nodeName=n1")
    assert absent is not None
    assert present is not None
    assert (absent.matches(raw), present.matches(raw)) == (True, False)


def test_equal_selections_share_a_matcher_and_everything_has_none() -> None:
    assert matcher_of_selection(EVERYTHING) is None
    assert matcher_of_selection(Selection("default", labels=" ", fields=",")) is None
    one = matcher_of_selection(Selection("a", "app=web", "spec.nodeName="))
    assert matcher_of_selection(Selection("b", "app=web", "spec.nodeName=")) is one


@pytest.mark.parametrize(
    "path", [pytest.param('a"b', id="a quote"), pytest.param("a\x01b", id="a control character"), "a." * 5_000 + "a"]
)
def test_check_selectors_accepts_any_path(path: str) -> None:
    check_selectors("", f"{path}=c")


def test_check_selectors_rejects_invalid_selectors() -> None:
    with pytest.raises(BadRequestError):
        check_selectors("a in (", "")
    with pytest.raises(BadRequestError):
        check_selectors("", "a")
