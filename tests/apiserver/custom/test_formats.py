"""Texts of a certain form, as kube-apiserver v1.36.4 tells them from others."""

from __future__ import annotations

import pytest

from mooring.apiserver.custom.formats import check_of, known_format

CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "date": (("2020-01-01", "2020-02-29"), ("2020-13-01", "x", "2021-02-29", "2020-1-1")),
    "date-time": (
        ("2020-01-01T00:00:00Z", "2020-01-01t00:00:00.5+01:00"),
        ("2020-01-01", "2020-01-01 00:00:00Z", "2020-01-01T25:00:00Z"),
    ),
    "duration": (("1h", "5 days", "1d"), ("x", "", "1")),
    "email": (("a@b.c", "a@b", "A <a@b>"), ("a", "")),
    "ipv4": (("1.2.3.4", "01.2.3.4"), ("1.2.3", "::1", "256.1.1.1")),
    "ipv6": (("::1",), ("1.2.3.4", "x")),
    "cidr": (("10.0.0.0/8", "::/0"), ("10.0.0.0", "10.0.0.1/33")),
    "hostname": (("a.bc", "a"), ("-a", "a_b", "a..b")),
    "uri": (("http://a/b", "/a", "a:b"), ("a", "", "http://[")),
    "uuid": (("123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"), ("x",)),
    "uuid4": (("123e4567-e89b-42d3-a456-426614174000",), ("123e4567-e89b-12d3-a456-426614174000",)),
    "byte": (("YQ==", "YWJj"), ("YQ=", "x", "")),
    "mac": (("01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab-cd-ef"), ("x", "01:23")),
    "password": (("anything",), ()),
    "k8s-short-name": (("a-b",), ("A", "-a", "", "a" * 64)),
    "k8s-long-name": (("a.b", "a"), ("a..b",)),
    "hexcolor": (("#fff", "fff"), ("#ffff",)),
    "rgbcolor": (("rgb(1, 2,255)",), ("rgb(1,2,256)",)),
    "isbn": (("0321751043", "978-0321751041"), ("123",)),
    "creditcard": (("4111111111111111", "4111-1111-1111-1111"), ("4111", "4111111111111112")),
    "ssn": (("123-45-6789",), ("123456789",)),
    "bsonobjectid": (("507f1f77bcf86cd799439011",), ("507f",)),
}


@pytest.mark.parametrize("name", CASES, ids=str)
def test_formats(name: str) -> None:
    check = check_of(name)
    assert check is not None
    good, bad = CASES[name]
    assert [text for text in good if not check(text)] == []
    assert [text for text in bad if check(text)] == []


@pytest.mark.parametrize(
    ("name", "type_name", "known"),
    [
        pytest.param("date-time", "string", "date-time", id="of a text"),
        pytest.param("date-time", "", "date-time", id="of something that may be a text"),
        pytest.param("int32", "integer", "int32", id="of a whole number"),
        pytest.param("int16", "integer", "", id="of no whole number"),
        pytest.param("double", "number", "double", id="of a number"),
        pytest.param("date", "boolean", "", id="of nothing else"),
        pytest.param("foo", "string", "", id="an unknown one"),
    ],
)
def test_what_is_a_format(name: str, type_name: str, known: str) -> None:
    assert known_format(name, type_name) == known
