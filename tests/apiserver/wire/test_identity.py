from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.wire.identity import Identity, IdentityError, identity_of
from mooring.apiserver.wire.json_text import parse_carefully

PREFIX = "couldn't get version/kind; json parse error: json: cannot unmarshal"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param({"kind": "Pod", "apiVersion": "v1"}, ("v1", "Pod"), id="as it says"),
        pytest.param({}, ("apps/v1", "Deployment"), id="as the address says"),
        pytest.param(None, ("apps/v1", "Deployment"), id="null says nothing"),
        pytest.param({"kind": None, "apiVersion": "/"}, ("apps/v1", "Deployment"), id="nothing in many words"),
        pytest.param({"apiVersion": "apps/"}, ("apps/v1", "Deployment"), id="a group without a version"),
        pytest.param({"apiVersion": "/v1"}, ("v1", "Deployment"), id="a version without a group"),
        pytest.param({"Kind": "Secret"}, ("apps/v1", "Secret"), id="case does not matter here"),
    ],
)
def test_what_a_body_is(raw: Any, expected: tuple[str, str]) -> None:
    assert identity_of(raw, "apps/v1", "Deployment", b"") == Identity(*expected)


def test_the_last_claim_counts() -> None:
    raw = parse_carefully(b'{"kind":"Pod","KIND":"Secret"}')
    assert identity_of(raw, "v1", "Pod", b"") == Identity("v1", "Secret")


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"kind": 5}, f"{PREFIX} number into Go struct field .kind of type string"),
        ({"apiVersion": []}, f"{PREFIX} array into Go struct field .apiVersion of type string"),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        ({"apiVersion": "batch/"}, "Object 'apiVersion' is missing in 'text'"),
    ],
    ids=repr,
)
def test_bodies_without_a_kind(raw: Any, error: str) -> None:
    with pytest.raises(IdentityError) as raised:
        identity_of(raw, "apps/v1", "Deployment", b"text")
    assert str(raised.value) == error


def test_only_objects_are_something() -> None:
    with pytest.raises(IdentityError, match="cannot unmarshal array into Go value of type struct"):
        identity_of([], "v1", "Pod", b"[]")


def test_group_and_version() -> None:
    assert (Identity("apps/v1", "x").group, Identity("apps/v1", "x").version) == ("apps", "v1")
    assert (Identity("v1", "x").group, Identity("v1", "x").version) == ("", "v1")
