"""Validation of, and warnings about, IP addresses and CIDRs.

1. Parsing has two levels. The sloppy one accepts what Kubernetes always accepted: leading zeros in IPv4 are decimal,
   and IPv4 addresses may be mapped to IPv6. The strict one rejects both for new values, because other software parses
   them differently.
2. A value of the stored object stays valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_network
from typing import NamedTuple

from mooring.api.field_errors import quoted
from mooring.apiserver.validation.fields import FieldError, invalid

IP_WANTED = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
CIDR_WANTED = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
INTERFACE_WANTED = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"

IPV4, IPV6 = "IPv4", "IPv6"
ADDRESSES_CACHED_MAX = 4_096


class SloppyAddress(NamedTuple):
    """A parsed address. An IPv4 address that is mapped into IPv6 is an IPv4 address."""

    ip: IPv4Address | IPv6Address
    has_leading_zeros: bool
    is_hidden_ipv4: bool


class SloppyRange(NamedTuple):
    """An address with a prefix length."""

    address: SloppyAddress
    prefix_length: int
    has_leading_zeros: bool
    bits: int
    """The number of bits of the address as text."""

    @property
    def network_text(self) -> str:
        """The range in its usual form."""
        length = max(self.prefix_length - 96, 0) if self.address.is_hidden_ipv4 else self.prefix_length
        return str(ip_network(f"{self.address.ip}/{length}", strict=False))

    @property
    def has_bits_beyond_prefix(self) -> bool:
        return int(self.address.ip) & ((1 << (self.bits - self.prefix_length)) - 1) != 0


@lru_cache(maxsize=ADDRESSES_CACHED_MAX)
def parse_ip(text: str) -> SloppyAddress | None:
    """An address. Cached, because each write of a pod's status parses it several times."""
    if ":" in text:
        return _parse_ipv6(text)
    parts = text.split(".")
    if len(parts) != 4 or not all(_is_number(part) and int(part) <= 255 for part in parts):
        return None
    has_leading_zeros = any(len(part) > 1 and part[0] == "0" for part in parts)
    return SloppyAddress(IPv4Address(".".join(str(int(part)) for part in parts)), has_leading_zeros, False)


def parse_range(text: str) -> SloppyRange | None:
    written, slash, length = text.partition("/")
    address = parse_ip(written)
    if not slash or address is None or not _is_number(length):
        return None
    bits = 128 if ":" in written else 32
    if int(length) > bits:
        return None
    has_leading_zeros = address.has_leading_zeros or (len(length) > 1 and length[0] == "0")
    return SloppyRange(address, int(length), has_leading_zeros, bits)


def family_of(text: str) -> str:
    """`IPv6`, or `IPv4` for everything else."""
    address = parse_ip(text)
    return IPV6 if address is not None and address.ip.version == 6 else IPV4


def are_of_both_families(texts: Iterable[str]) -> bool:
    """Whether valid addresses, or ranges, have both families among them."""
    return len({family_of(text.partition("/")[0]) for text in texts}) == 2


# --- errors -----------------------------------------------------------------------------------------------------


def validate_ip(value: str, path: str, known: Sequence[str] = ()) -> list[FieldError]:
    """Field errors of an address in a field with sloppy parsing."""
    if value in known:
        return []
    address = parse_ip(value)
    if address is None:
        return [invalid(path, value, IP_WANTED)]
    errors = []
    if address.has_leading_zeros:
        errors.append(invalid(path, value, "must not have leading 0s"))
    elif address.is_hidden_ipv4:
        errors.append(invalid(path, value, "must not be an IPv4-mapped IPv6 address"))
    return errors


def validate_range(value: str, path: str, known: Sequence[str] = ()) -> list[FieldError]:
    if value in known:
        return []
    found = parse_range(value)
    if found is None:
        return [invalid(path, value, CIDR_WANTED)]
    if found.has_leading_zeros:
        return [invalid(path, value, "must not have leading 0s in IP or prefix length")]
    if found.address.is_hidden_ipv4:
        return [invalid(path, value, "must not have an IPv4-mapped IPv6 address")]
    if found.has_bits_beyond_prefix:
        return [invalid(path, value, "must not have bits set beyond the prefix length")]
    return []


def validate_interface_address(value: str, path: str) -> list[FieldError]:
    """The address of a network interface, with its prefix length: there is only one way to write it."""
    found = parse_range(value)
    if found is None:
        return [invalid(path, value, INTERFACE_WANTED)]
    length = found.prefix_length
    if found.address.is_hidden_ipv4 and length > 32:
        length -= 96
    usual = f"{found.address.ip}/{length}"
    return [] if value == usual else [invalid(path, value, f"must be in canonical form ({quoted(usual)})")]


def validate_endpoint_ip(value: str, path: str) -> list[FieldError]:
    """An address that traffic can be sent to, none of the special ranges."""
    address = parse_ip(value)
    if address is None:
        return [invalid(path, value, "must be a valid IP address")]
    ip = address.ip
    errors = []
    if ip.is_unspecified:
        errors.append(invalid(path, value, f"may not be unspecified ({value})"))
    if ip.is_loopback:
        errors.append(invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if ip.is_link_local:
        errors.append(invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if _is_link_local_multicast(ip):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(path, value, detail))
    return errors


# --- warnings ---------------------------------------------------------------------------------------------------


def ip_warnings(value: str, path: str) -> list[str]:
    address = parse_ip(value)
    if address is None:
        return []
    if address.has_leading_zeros or address.is_hidden_ipv4:
        return [f"{path}: non-standard IP address {quoted(value)} is invalid: use {quoted(str(address.ip))}"]
    if address.ip.version == 6 and str(address.ip) != value:
        canonical = quoted(str(address.ip))
        return [f"{path}: IPv6 address {quoted(value)} should be in RFC 5952 canonical format ({canonical})"]
    return []


def range_warnings(value: str, path: str) -> list[str]:
    found = parse_range(value)
    if found is None:
        return []
    warnings = []
    ip, network = found.address.ip, found.network_text
    if found.has_bits_beyond_prefix:
        single = quoted(f"{ip}/{found.bits}")
        warnings.append(
            f"{path}: CIDR value {quoted(value)} is ambiguous in this context "
            f"(should be {quoted(network)} or {single}?)"
        )
    if found.has_leading_zeros or found.address.is_hidden_ipv4:
        warnings.append(f"{path}: non-standard CIDR value {quoted(value)} is invalid: use {quoted(network)}")
    if not warnings and ip.version == 6 and f"{ip}/{found.prefix_length}" != value:
        canonical = quoted(f"{ip}/{found.prefix_length}")
        warnings.append(f"{path}: IPv6 CIDR value {quoted(value)} should be in RFC 5952 canonical format ({canonical})")
    return warnings


# --- parts ------------------------------------------------------------------------------------------------------


def _parse_ipv6(text: str) -> SloppyAddress | None:
    if "%" in text:
        return None
    has_leading_zeros = False
    head, _, tail = text.rpartition(":")
    if "." in tail:
        inner = parse_ip(tail)
        if inner is None or not isinstance(inner.ip, IPv4Address):
            return None
        has_leading_zeros = inner.has_leading_zeros
        text = f"{head}:{inner.ip}"
    try:
        ip = IPv6Address(text)
    except AddressValueError:
        return None
    hidden = ip.ipv4_mapped
    return SloppyAddress(hidden or ip, has_leading_zeros, hidden is not None)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_link_local_multicast(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv4Address):
        return int(ip) >> 8 == 0xE00000
    # Of the second byte only the scope counts: ff02, ff12, ff32 ...
    first = int(ip) >> 112
    return first >> 8 == 0xFF and first & 0x0F == 0x02
