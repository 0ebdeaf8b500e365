"""The tree of exceptions, and the messages of field errors."""

from __future__ import annotations

import pytest

from mooring.api.errors import (
    DecodeError,
    LabelSelectorError,
    NodeSelectorError,
    ObjectError,
    QuantityError,
    UnknownKindError,
)
from mooring.api.field_errors import aggregated, invalid_value, listed, quoted, unsupported_value


@pytest.mark.parametrize("error", [DecodeError, UnknownKindError, QuantityError, LabelSelectorError, NodeSelectorError])
def test_all_are_object_errors_and_value_errors(error: type[Exception]) -> None:
    assert issubclass(error, ObjectError)
    assert issubclass(error, ValueError)


@pytest.mark.parametrize(
    ("kind", "name", "path", "text"),
    [
        ("Pod", "default/p", "spec.priority", 'Pod "default/p": spec.priority: is wrong'),
        ("Pod", "", "spec.priority", "Pod: spec.priority: is wrong"),
        ("Pod", "default/p", "", 'Pod "default/p": is wrong'),
        ("", "p", "kind", 'object "p": kind: is wrong'),
        ("", "", "", "object: is wrong"),
    ],
)
def test_a_decode_error_names_the_object_and_the_field(kind: str, name: str, path: str, text: str) -> None:
    error = DecodeError(kind, name, path, "is wrong")
    assert str(error) == text
    assert (error.kind, error.name, error.path, error.problem) == (kind, name, path, "is wrong")


def test_the_message_for_an_unknown_kind() -> None:
    assert str(UnknownKindError("v1", "Nonsense")) == 'no kind "Nonsense" is registered for version "v1"'


def test_the_message_for_an_unknown_version_names_the_known_ones() -> None:
    error = UnknownKindError("extensions/v1beta1", "ReplicaSet", ("apps/v1",))
    assert str(error).endswith('is registered for version "extensions/v1beta1"; it is known in "apps/v1"')


# --- Faults of fields, worded as Kubernetes words them ---------------------------------------------------------------


def test_an_invalid_value_is_quoted() -> None:
    assert invalid_value("key", "a b", "no blanks") == 'key: Invalid value: "a b": no blanks'


@pytest.mark.parametrize(
    ("values", "printed"),
    [((), "null"), (("a",), '["a"]'), (("a", "b&c", "<d>"), r'["a","b\u0026c","\u003cd\u003e"]')],
    ids=["none", "one", "markup"],
)
def test_an_invalid_list_is_printed_as_json(values: tuple[str, ...], printed: str) -> None:
    assert listed(values) == printed
    assert invalid_value("values", values, "too few") == f"values: Invalid value: {printed}: too few"


def test_the_message_for_an_error_without_a_field() -> None:
    assert invalid_value("", "x", "wrong") == '<nil>: Invalid value: "x": wrong'


def test_the_message_for_an_unsupported_value_lists_the_supported_ones() -> None:
    text = unsupported_value("operator", "Bogus", ["In", "NotIn"])
    assert text == 'operator: Unsupported value: "Bogus": supported values: "In", "NotIn"'


@pytest.mark.parametrize(
    ("faults", "text"),
    [(["a"], "a"), (["a", "b"], "[a, b]"), (["a", "b", "a"], "[a, b]"), (["a", "a"], "a")],
    ids=["one", "two", "one twice among others", "one twice"],
)
def test_repeated_errors_are_listed_once(faults: list[str], text: str) -> None:
    assert aggregated(faults) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('say "hi"', r'"say \"hi\""'),
        ("a\\b", r'"a\\b"'),
        ("a\tb\n", r'"a\tb\n"'),
        ("\x00\x7f", r'"\x00\x7f"'),
        ("é中", '"é中"'),
        ("\u200b", r'"\u200b"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_what_cannot_be_printed_is_escaped(text: str, printed: str) -> None:
    assert quoted(text) == printed
