"""Faults of patches are told in Kubernetes' words, which quote values as Go prints them."""

from __future__ import annotations

import pytest

from mooring.api.errors import ObjectError
from mooring.api.patching.errors import BAD_REQUEST, PatchError, cannot_decode, go_text, wrong_type


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (True, "true"),
        ("a b", "a b"),
        (80, "80"),
        ([1, "a", None], "[1 a <nil>]"),
        ({"b": [True], "a": {}}, "map[a:map[] b:[true]]"),
    ],
)
def test_values_as_go_prints_them(value: object, text: str) -> None:
    assert go_text(value) == text


def test_types_as_go_names_them() -> None:
    assert str(wrong_type("[]interface {}", "x")) == "expected a []interface {}, but received a string"
    assert str(cannot_decode(True, "string")) == "json: cannot unmarshal bool into Go value of type string"


def test_a_patch_error_is_an_object_error_that_says_what_the_server_answers() -> None:
    error = PatchError("no", BAD_REQUEST)
    assert isinstance(error, ObjectError)
    assert (error.code, error.status_message) == (400, "no")
    assert PatchError("secret reason", 422).status_message.startswith("the server rejected our request")
