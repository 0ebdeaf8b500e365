"""Addresses: `url()`, `ip()`, `cidr()`, and the named formats of `format.named()`.

Comes in   texts
Goes out   rows for the environment

 1. Addresses are strict: no zones, no IPv4 inside of IPv6, no leading zeros.
 2. A URL is absolute, or an absolute path.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv6Address,
    NetmaskValueError,
    ip_address,
    ip_interface,
)
from urllib.parse import unquote, unquote_plus

from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.functions import Row
from mooring.api.cel.times import TimeError, parse_timestamp
from mooring.api.cel.values import NONE, Cidr, IpAddress, NamedFormat, Optional, Url, Value
from mooring.api.cel.versions import quoted
from mooring.api.label_syntax import label_key_faults, label_value_faults

# --- addresses --------------------------------------------------------------------------------------------------


def ip(text: str) -> IpAddress:
    if "%" in text:
        raise EvaluationFailure(f"IP address {quoted(text)} with zone value is not allowed")
    try:
        address = ip_address(text)
    except (AddressValueError, ValueError):
        wrapped = f"IP Address {quoted(text)} parse error during conversion from string: "
        raise EvaluationFailure(f"{wrapped}ParseAddr({quoted(text)}): {_address_fault(text)}") from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationFailure(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return IpAddress(address)


def cidr(text: str) -> Cidr:
    wrapped = "network address parse error during conversion from string: "
    address, slash, bits = text.rpartition("/")
    if not slash:
        raise EvaluationFailure(f"{wrapped}{wrapped}netip.ParsePrefix({quoted(text)}): no '/'")
    if not bits.isdecimal() or (len(bits) > 1 and bits[0] == "0"):
        reason = f"netip.ParsePrefix({quoted(text)}): bad bits after slash: {quoted(bits)}"
        raise EvaluationFailure(f"{wrapped}{wrapped}{reason}")
    try:
        interface = ip_interface(text)
    except (AddressValueError, NetmaskValueError, ValueError):
        reason = f"netip.ParsePrefix({quoted(text)}): prefix length out of range"
        if not _is_address(address):
            reason = f"netip.ParsePrefix({quoted(text)}): ParseAddr({quoted(address)}): {_address_fault(address)}"
        raise EvaluationFailure(f"{wrapped}{wrapped}{reason}") from None
    if isinstance(interface.ip, IPv6Address) and interface.ip.ipv4_mapped is not None:
        raise EvaluationFailure(f"{wrapped}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Cidr(interface)


def contains_ip(network: Cidr, address: IpAddress | str) -> bool:
    wanted = ip(address) if isinstance(address, str) else address
    return wanted.address in network.interface.network


def contains_cidr(network: Cidr, other: Cidr | str) -> bool:
    inner = (cidr(other) if isinstance(other, str) else other).interface.network
    outer = network.interface.network
    return inner.version == outer.version and inner.overlaps(outer) and outer.prefixlen <= inner.prefixlen


def masked(network: Cidr) -> Cidr:
    inside = network.interface.network
    return Cidr(ip_interface((inside.network_address, inside.prefixlen)))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _address_fault(text: str) -> str:
    return "unable to parse IP" if "." not in text and ":" not in text else "unexpected character"


def _succeeds(read: Callable[[str], Value]) -> Callable[[str], bool]:
    def attempt(text: str) -> bool:
        try:
            read(text)
        except EvaluationFailure:
            return False
        return True

    return attempt


def _is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    is_broadcast = isinstance(address, IPv4Address) and int(address) == 2**32 - 1
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and not is_broadcast


def _is_link_local_multicast(address: IPv4Address | IPv6Address) -> bool:
    packed = address.packed
    return packed[:3] == b"\xe0\x00\x00" if address.version == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


# --- URLs -------------------------------------------------------------------------------------------------------

_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?]*))?([^?]*)(?:\?(.*))?", re.DOTALL)


def url(text: str) -> Url:
    parts = _URL.fullmatch(text)
    wrapped = "URL parse error during conversion from string: "
    if parts is None or not text:
        raise EvaluationFailure(f"{wrapped}parse {quoted(text)}: empty url")
    if any(letter < " " or letter == "\x7f" for letter in text):
        raise EvaluationFailure(f"{wrapped}parse {quoted(text)}: net/url: invalid control character in URL")
    scheme, authority, path, query = (parts[1] or "").lower(), parts[2], parts[3], parts[4] or ""
    if not scheme and not path.startswith("/") and authority is None:
        raise EvaluationFailure(f"{wrapped}parse {quoted(text)}: invalid URI for request")
    broken = re.search(r"%(?![0-9A-Fa-f]{2}).{0,2}", path)
    if broken:
        raise EvaluationFailure(f"{wrapped}parse {quoted(text)}: invalid URL escape {quoted(broken[0])}")
    host = unquote((authority or "").rpartition("@")[2])
    hostname, port = _host_and_port(host)
    if port and not port.isdecimal():
        raise EvaluationFailure(f"{wrapped}parse {quoted(text)}: invalid port {quoted(':' + port)} after host")
    return Url(text, scheme, host, hostname, port, path, query)


def query_of(address: Url) -> dict[Value, Value]:
    found: dict[Value, list[Value]] = {}
    for pair in address.query.split("&"):
        if pair and ";" not in pair:
            key, _, value = pair.partition("=")
            found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return dict(found)


def _host_and_port(host: str) -> tuple[str, str]:
    if host.startswith("["):
        inside, _, rest = host[1:].partition("]")
        return inside, rest.removeprefix(":")
    hostname, colon, port = host.rpartition(":")
    return (hostname, port) if colon else (host, "")


# --- formats ----------------------------------------------------------------------------------------------------

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character "
    f"(e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character "
    rf"(e.g. 'example.com', regex used for validation is '{_LABEL}(\.{_LABEL})*')"
)
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)


def validate(form: NamedFormat, text: str) -> Optional:
    faults: list[Value] = [*form.faults(text)]
    return Optional(faults) if faults else NONE


_Faults = Callable[[str], list[str]]


def _name_faults(form: str, rule: str, bytes_max: int, is_prefix: bool, dots: bool = False) -> _Faults:
    def faults(text: str) -> list[str]:
        checked = text[:-1] + "a" if is_prefix and text.endswith("-") and len(text) > 1 else text
        found = []
        if len(checked.encode()) > bytes_max:
            found.append(f"must be no more than {bytes_max} bytes")
        if not re.fullmatch(form, checked, re.ASCII):
            found.append("must not contain dots" if dots and re.fullmatch(_SUBDOMAIN, checked, re.ASCII) else rule)
        return found

    return faults


def _label(is_prefix: bool) -> Callable[[str], list[str]]:
    return _name_faults(_LABEL, _LABEL_RULE, 63, is_prefix, dots=True)


def _subdomain(is_prefix: bool) -> Callable[[str], list[str]]:
    return _name_faults(_SUBDOMAIN, _SUBDOMAIN_RULE, 253, is_prefix)


def _label_1035(is_prefix: bool) -> Callable[[str], list[str]]:
    return _name_faults(_LABEL_1035, _LABEL_1035_RULE, 63, is_prefix)


def _uri_faults(text: str) -> list[str]:
    try:
        url(text)
    except EvaluationFailure as failure:
        return [str(failure).removeprefix("URL parse error during conversion from string: ")]
    return []


def _byte_faults(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _date_faults(text: str) -> list[str]:
    return _time_faults(f"{text}T00:00:00Z", "invalid date")


def _time_faults(text: str, complaint: str = "invalid datetime") -> list[str]:
    try:
        parse_timestamp(text)
    except TimeError:
        return [complaint]
    return []


FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", _label(False), 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain(False), 60),
    "dns1035Label": NamedFormat("DNS1035Label", _label_1035(False), 30),
    "qualifiedName": NamedFormat("QualifiedName", label_key_faults, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _label(True), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _subdomain(True), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _label_1035(True), 30),
    "labelValue": NamedFormat("LabelValue", label_value_faults, 40),
    "uri": NamedFormat("URI", _uri_faults, 1000),
    "uuid": NamedFormat("uuid", lambda text: [] if _UUID.fullmatch(text) else ["does not match the UUID format"], 100),
    "byte": NamedFormat("byte", _byte_faults, 100),
    "date": NamedFormat("date", _date_faults, 100),
    "datetime": NamedFormat("datetime", _time_faults, 100),
}


def _constant(form: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: form


def named_format(name: str) -> Optional:
    form = FORMATS.get(name)
    return NONE if form is None else Optional(form)


ROWS = [
    Row("url(string): url", url),
    Row("(url).getScheme(): string", lambda address: address.scheme),
    Row("(url).getHost(): string", lambda address: address.host),
    Row("(url).getHostname(): string", lambda address: address.hostname),
    Row("(url).getPort(): string", lambda address: address.port),
    Row("(url).getEscapedPath(): string", lambda address: address.escaped_path),
    Row("(url).getQuery(): map(string, list(string))", query_of),
    Row("isURL(string): bool", _succeeds(url)),
    Row("ip(string): ip", ip),
    Row("(cidr).ip(): ip", lambda network: IpAddress(network.interface.ip)),
    Row("ip.isCanonical(string): bool", lambda text: str(ip(text).address) == text),
    Row("isIP(string): bool", _succeeds(ip)),
    Row("(ip).family(): int", lambda value: value.address.version),
    Row("(ip).isUnspecified(): bool", lambda value: value.address.is_unspecified),
    Row("(ip).isLoopback(): bool", lambda value: value.address.is_loopback),
    Row("(ip).isLinkLocalMulticast(): bool", lambda value: _is_link_local_multicast(value.address)),
    Row("(ip).isLinkLocalUnicast(): bool", lambda value: value.address.is_link_local),
    Row("(ip).isGlobalUnicast(): bool", lambda value: _is_global_unicast(value.address)),
    Row("cidr(string): cidr", cidr),
    Row("(cidr).containsIP(string): bool", contains_ip),
    Row("(cidr).containsIP(ip): bool", contains_ip),
    Row("(cidr).containsCIDR(string): bool", contains_cidr),
    Row("(cidr).containsCIDR(cidr): bool", contains_cidr),
    Row("(cidr).prefixLength(): int", lambda network: network.interface.network.prefixlen),
    Row("(cidr).masked(): cidr", masked),
    Row("isCIDR(string): bool", _succeeds(cidr)),
    Row("(format).validate(string): optional(list(string))", validate),
    Row("format.named(string): optional(format)", named_format),
    *(Row(f"format.{name}(): format", _constant(form)) for name, form in FORMATS.items()),
]
