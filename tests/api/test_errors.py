"""The tree of exceptions, and what they say."""

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


def test_an_unknown_kind_is_told_in_the_words_of_kubernetes() -> None:
    assert str(UnknownKindError("v1", "Nonsense")) == 'no kind "Nonsense" is registered for version "v1"'


def test_a_kind_of_another_version_is_told_with_the_version_that_is_known() -> None:
    error = UnknownKindError("extensions/v1beta1", "ReplicaSet", ("apps/v1",))
    assert str(error).endswith('is registered for version "extensions/v1beta1"; it is known in "apps/v1"')
