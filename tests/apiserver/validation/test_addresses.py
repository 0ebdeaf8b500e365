"""Validation and warnings of IP addresses and CIDRs: new values must be unambiguous, old ones may stay."""

from __future__ import annotations

import pytest

from mooring.apiserver.validation.addresses import (
    are_of_both_families,
    family_of,
    ip_warnings,
    range_warnings,
    validate_endpoint_ip,
    validate_ip,
    validate_range,
)
from tests.apiserver.core_documents import messages

IP_WANTED = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
CIDR_WANTED = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        pytest.param("10.9.8.7", "", id="IPv4"),
        pytest.param("2001:DB8::1", "", id="IPv6 in capitals"),
        pytest.param("10.9.8", IP_WANTED, id="three parts are too few"),
        pytest.param("10.9.8.256", IP_WANTED, id="a part is a byte"),
        pytest.param("", IP_WANTED, id="empty"),
        pytest.param("fe80::1%eth0", IP_WANTED, id="IPv6 zone"),
        pytest.param("1::2::3", IP_WANTED, id="two gaps"),
        pytest.param("010.9.8.7", "must not have leading 0s", id="leading zeros"),
        pytest.param("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address", id="IPv4-mapped IPv6"),
        pytest.param("::ffff:01.2.3.4", "must not have leading 0s", id="leading zeros are reported first"),
    ],
)
def test_validate_ip_rejects_malformed_and_ambiguous_addresses(value: str, detail: str) -> None:
    expected = [f'a.ip: Invalid value: "{value}": {detail}'] if detail else []
    assert messages(validate_ip(value, "a.ip")) == expected


def test_an_unchanged_ambiguous_address_is_accepted() -> None:
    assert validate_ip("010.9.8.7", "a", ["010.9.8.7"]) == []
    assert validate_range("10.0.0.1/8", "a", ["10.0.0.1/8"]) == []


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        pytest.param("10.0.0.0/8", "", id="IPv4"),
        pytest.param("2001:db8::/32", "", id="IPv6"),
        pytest.param("10.0.0.0", CIDR_WANTED, id="an address is no range"),
        pytest.param("10.0.0.0/33", CIDR_WANTED, id="IPv4 has 32 bits"),
        pytest.param("10.0.0.0/-1", CIDR_WANTED, id="a length is a number"),
        pytest.param("10.0.0.0/08", "must not have leading 0s in IP or prefix length", id="leading zeros"),
        pytest.param("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address", id="IPv4-mapped IPv6"),
        pytest.param("10.0.0.1/8", "must not have bits set beyond the prefix length", id="bits beyond the prefix"),
    ],
)
def test_validate_range_rejects_malformed_and_ambiguous_cidrs(value: str, detail: str) -> None:
    expected = [f'a: Invalid value: "{value}": {detail}'] if detail else []
    assert messages(validate_range(value, "a")) == expected


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        pytest.param("1.2.3.4", "", id="an ordinary address"),
        pytest.param("x", "must be a valid IP address", id="no address"),
        pytest.param("0.0.0.0", "may not be unspecified (0.0.0.0)", id="unspecified"),
        pytest.param("127.9.9.9", "may not be in the loopback range (127.0.0.0/8, ::1/128)", id="loopback"),
        pytest.param("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)", id="link-local"),
        pytest.param(
            "ff02::1",
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
            id="link-local multicast",
        ),
        pytest.param("224.0.1.1", "", id="multicast beyond the link"),
    ],
)
def test_endpoint_addresses_must_not_be_special_addresses(value: str, detail: str) -> None:
    expected = [f'a: Invalid value: "{value}": {detail}'] if detail else []
    assert messages(validate_endpoint_ip(value, "a")) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("10.9.8.7", [], id="canonical"),
        pytest.param("nonsense", [], id="invalid values have no warning"),
        pytest.param(
            "010.9.8.7",
            ['a: non-standard IP address "010.9.8.7" is invalid: use "10.9.8.7"'],
            id="leading zeros",
        ),
        pytest.param(
            "::ffff:1.2.3.4",
            ['a: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"'],
            id="IPv4-mapped IPv6",
        ),
        pytest.param(
            "2001:DB8::1",
            ['a: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")'],
            id="capitals",
        ),
    ],
)
def test_warnings_suggest_the_canonical_address(value: str, expected: list[str]) -> None:
    assert ip_warnings(value, "a") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("10.0.0.0/8", [], id="canonical"),
        pytest.param("x", [], id="invalid values have no warning"),
        pytest.param(
            "10.0.0.1/8",
            ['a: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'],
            id="bits behind the prefix",
        ),
        pytest.param(
            "10.0.0.0/08",
            ['a: non-standard CIDR value "10.0.0.0/08" is invalid: use "10.0.0.0/8"'],
            id="leading zeros",
        ),
        pytest.param(
            "2001:DB8::/32",
            ['a: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")'],
            id="capitals",
        ),
    ],
)
def test_warnings_suggest_the_canonical_cidr(value: str, expected: list[str]) -> None:
    assert range_warnings(value, "a") == expected


def test_ip_families() -> None:
    assert [family_of(text) for text in ("1.2.3.4", "fd00::1", "::ffff:1.2.3.4")] == ["IPv4", "IPv6", "IPv4"]
    assert are_of_both_families(["10.0.0.0/8", "fd00::/8"])
    assert not are_of_both_families(["10.0.0.0/8", "11.0.0.0/8"])
