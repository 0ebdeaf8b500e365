"""What labels may look like."""

from __future__ import annotations

import pytest

from mooring.api.label_syntax import label_key_errors, label_value_errors

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
OPTIONAL_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize("key", ["a", "A-b_c.9", "example.com/tier", "x" * 63, f"{'a.' * 126}a/name"])
def test_good_keys(key: str) -> None:
    assert label_key_errors(key) == []


@pytest.mark.parametrize(
    ("key", "faults"),
    [
        ("", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("-a", [f"name part {NAME_RULE}"]),
        ("a\n", [f"name part {NAME_RULE}"]),
        ("ä", [f"name part {NAME_RULE}"]),
        ("x" * 64, ["name part must be no more than 63 bytes"]),
        ("ä" * 32, ["name part must be no more than 63 bytes", f"name part {NAME_RULE}"]),
        ("/a", ["prefix part must be non-empty"]),
        ("Example.com/a", [f"prefix part {PREFIX_RULE}"]),
        ("a" * 254 + "/a", ["prefix part must be no more than 253 bytes"]),
        ("a/", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        (
            "a/b/c",
            [f"a valid label key {NAME_RULE} {OPTIONAL_PREFIX}"],
        ),
    ],
)
def test_faults_of_keys(key: str, faults: list[str]) -> None:
    assert label_key_errors(key) == faults


@pytest.mark.parametrize("value", ["", "a", "v1.2_3-x", "x" * 63])
def test_good_values(value: str) -> None:
    assert label_value_errors(value) == []


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ("a b", [VALUE_RULE]),
        (".", [VALUE_RULE]),
        ("x" * 64, ["must be no more than 63 bytes"]),
        ("-" * 64, ["must be no more than 63 bytes", VALUE_RULE]),
    ],
)
def test_faults_of_values(value: str, faults: list[str]) -> None:
    assert label_value_errors(value) == faults
