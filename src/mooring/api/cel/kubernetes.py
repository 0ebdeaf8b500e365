"""The functions of Kubernetes: quantities, versions, optionals, URLs, addresses, named formats.

Output: the rows of these functions for the environment.

 1. The result of adding or subtracting quantities is a `ComputedQuantity`.
 2. The functions of the authorizer are declared, as Kubernetes declares them everywhere. No expression here has an
    authorizer, so they are never called.
 3. Addresses are strict: no zones, no IPv4 in IPv6, no leading zeros. A URL is absolute, or an absolute path.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from fractions import Fraction
from ipaddress import AddressValueError, IPv4Address, IPv6Address, NetmaskValueError, ip_address, ip_interface
from urllib.parse import unquote, unquote_plus

from mooring.api.cel.conversions import TimeError, parse_timestamp
from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.functions import Binding, OverloadRow
from mooring.api.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    Cidr,
    ComputedQuantity,
    Duration,
    IpAddress,
    NamedFormat,
    Optional,
    Timestamp,
    Url,
    Value,
    Version,
    VersionError,
    parse_version,
    parse_version_leniently,
)
from mooring.api.errors import QuantityError
from mooring.api.field_errors import quoted
from mooring.api.labels import label_key_errors, label_value_errors
from mooring.api.quantity import NANO, Format, Quantity, parse_quantity

_QUANTITY_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_QUANTITY_SUFFIX = "unable to parse quantity's suffix"


def _succeeds(read: Binding) -> Callable[..., bool]:
    """A function that tells whether `read` can read a text."""

    def attempt(*arguments: Value) -> bool:
        try:
            read(*arguments)
        except EvaluationFailure:
            return False
        return True

    return attempt


# --- quantities -------------------------------------------------------------------------------------------------


def quantity(text: str) -> Quantity:
    try:
        if text != text.strip():
            raise QuantityError(text)
        return parse_quantity(text)
    except QuantityError as error:
        raise EvaluationFailure(_QUANTITY_SUFFIX if "suffix" in str(error) else _QUANTITY_FORM) from None


def compare_quantities(left: Quantity, right: Quantity) -> int:
    return (left.amount_nano > right.amount_nano) - (left.amount_nano < right.amount_nano)


def is_integer(amount: Quantity) -> bool:
    return amount.amount_nano % NANO == 0 and INT_MIN <= amount.amount_nano // NANO <= INT_MAX


def as_integer(amount: Quantity) -> int:
    if not is_integer(amount):
        raise EvaluationFailure("cannot convert value to integer")
    return amount.amount_nano // NANO


def add_quantities(left: Quantity, right: Quantity) -> ComputedQuantity:
    return _computed(left + right)


def subtract_quantities(left: Quantity, right: Quantity) -> ComputedQuantity:
    return _computed(left - right)


def _computed(result: Quantity) -> ComputedQuantity:
    return ComputedQuantity(result.amount_nano, result.format)


def _whole(value: int) -> Quantity:
    return Quantity(value * NANO, Format.DECIMAL_EXPONENT)


def _sign(amount: Quantity) -> int:
    return (amount.amount_nano > 0) - (amount.amount_nano < 0)


# --- versions ---------------------------------------------------------------------------------------------------


def semver(text: str, is_lenient: bool = False) -> Version:
    try:
        return parse_version_leniently(text) if is_lenient else parse_version(text)
    except VersionError as error:
        raise EvaluationFailure(str(error)) from None


# --- optionals --------------------------------------------------------------------------------------------------


def value_of(optional: Optional) -> Value:
    if not optional.has_value:
        raise EvaluationFailure("optional.none() dereference")
    return optional.held


def of_non_zero(value: Value) -> Optional:
    is_zero = (
        value is None
        or (isinstance(value, (bool, int, float, str, bytes, list, dict)) and not value)
        or (isinstance(value, Duration) and value.nanoseconds == 0)
        or (isinstance(value, Timestamp) and value.nanoseconds == -62_135_596_800 * NANO)
    )
    return NONE if is_zero else Optional(value)


def unwrapped(elements: list[Value]) -> list[Value]:
    held: list[Value] = []
    for element in elements:
        if not isinstance(element, Optional):
            raise EvaluationFailure(f"value {element} is not optional")
        if element.has_value:
            held.append(element.held)
    return held


_AUTHORIZER_ROWS = """
(Authorizer).path(string): PathCheck
(Authorizer).group(string): GroupCheck
(Authorizer).serviceAccount(string, string): Authorizer
(GroupCheck).resource(string): ResourceCheck
(ResourceCheck).subresource(string): ResourceCheck
(ResourceCheck).namespace(string): ResourceCheck
(ResourceCheck).name(string): ResourceCheck
(PathCheck).check(string): Decision
(ResourceCheck).check(string): Decision
(Decision).errored(): bool
(Decision).error(): string
(Decision).allowed(): bool
(Decision).reason(): string
(ResourceCheck).fieldSelector(string): ResourceCheck
(ResourceCheck).labelSelector(string): ResourceCheck
"""
_AUTHORIZER_TYPES = ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")


def _never(*arguments: Value) -> Value:
    raise AssertionError(f"no device has an authorizer: {arguments}")


def _authorizer_row(signature: str) -> OverloadRow:
    for name in _AUTHORIZER_TYPES:
        signature = signature.replace(f"({name})", f"(kubernetes.authorization.{name})")
        signature = signature.replace(f": {name}", f": kubernetes.authorization.{name}")
    return OverloadRow(signature, _never)


ROWS = [
    *(_authorizer_row(line) for line in _AUTHORIZER_ROWS.split("\n") if line),
    OverloadRow("quantity(string): quantity", quantity),
    OverloadRow("isQuantity(string): bool", _succeeds(quantity)),
    OverloadRow("sign(quantity): int", _sign),
    OverloadRow("(quantity).isGreaterThan(quantity): bool", lambda left, right: left.amount_nano > right.amount_nano),
    OverloadRow("(semver).isGreaterThan(semver): bool", lambda left, right: left.precedence > right.precedence),
    OverloadRow("(quantity).isLessThan(quantity): bool", lambda left, right: left.amount_nano < right.amount_nano),
    OverloadRow("(semver).isLessThan(semver): bool", lambda left, right: left.precedence < right.precedence),
    OverloadRow("(quantity).compareTo(quantity): int", compare_quantities),
    OverloadRow("(semver).compareTo(semver): int", Version.compared_to),
    OverloadRow("(quantity).asApproximateFloat(): double", lambda amount: float(Fraction(amount.amount_nano, NANO))),
    OverloadRow("(quantity).asInteger(): int", as_integer),
    OverloadRow("(quantity).isInteger(): bool", is_integer),
    OverloadRow("(quantity).add(quantity): quantity", add_quantities),
    OverloadRow("(quantity).add(int): quantity", lambda left, right: add_quantities(left, _whole(right))),
    OverloadRow("(quantity).sub(quantity): quantity", subtract_quantities),
    OverloadRow("(quantity).sub(int): quantity", lambda left, right: subtract_quantities(left, _whole(right))),
    OverloadRow("semver(string): semver", semver),
    OverloadRow("semver(string, bool): semver", semver),
    OverloadRow("isSemver(string): bool", _succeeds(semver)),
    OverloadRow("isSemver(string, bool): bool", _succeeds(semver)),
    OverloadRow("(semver).major(): int", lambda version: version.major),
    OverloadRow("(semver).minor(): int", lambda version: version.minor),
    OverloadRow("(semver).patch(): int", lambda version: version.patch),
    OverloadRow("optional.of(V): optional(V)", Optional),
    OverloadRow("optional.ofNonZeroValue(V): optional(V)", of_non_zero),
    OverloadRow("optional.none(): optional(V)", lambda: NONE),
    OverloadRow("(optional(V)).value(): V", value_of),
    OverloadRow("(optional(V)).hasValue(): bool", lambda optional: optional.has_value),
    OverloadRow("(optional(V)).or(optional(V)): optional(V)"),
    OverloadRow("(optional(V)).orValue(V): V"),
    OverloadRow("(list(V)).last(): optional(V)", lambda elements: Optional(elements[-1]) if elements else NONE),
    OverloadRow("(list(V)).first(): optional(V)", lambda elements: Optional(elements[0]) if elements else NONE),
    OverloadRow("optional.unwrap(list(optional(V))): list(V)", unwrapped),
    OverloadRow("(list(optional(V))).unwrapOpt(): list(V)", unwrapped),
]


# --- addresses --------------------------------------------------------------------------------------------------


def ip(text: str) -> IpAddress:
    if "%" in text:
        raise EvaluationFailure(f"IP address {quoted(text)} with zone value is not allowed")
    try:
        address = ip_address(text)
    except (AddressValueError, ValueError):
        wrapped = f"IP Address {quoted(text)} parse error during conversion from string: "
        raise EvaluationFailure(f"{wrapped}ParseAddr({quoted(text)}): {_address_error(text)}") from None
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
            reason = f"netip.ParsePrefix({quoted(text)}): ParseAddr({quoted(address)}): {_address_error(address)}"
        raise EvaluationFailure(f"{wrapped}{wrapped}{reason}") from None
    if isinstance(interface.ip, IPv6Address) and interface.ip.ipv4_mapped is not None:
        raise EvaluationFailure(f"{wrapped}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Cidr(interface)


def contains_ip(network: Cidr, address: IpAddress | str) -> bool:
    searched = ip(address) if isinstance(address, str) else address
    return searched.address in network.interface.network


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


def _address_error(text: str) -> str:
    return "unable to parse IP" if "." not in text and ":" not in text else "unexpected character"


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
    errors: list[Value] = [*form.errors(text)]
    return Optional(errors) if errors else NONE


_Errors = Callable[[str], list[str]]


def _name_errors(form: str, rule: str, bytes_max: int, is_prefix: bool, dots: bool = False) -> _Errors:
    def errors(text: str) -> list[str]:
        checked = text[:-1] + "a" if is_prefix and text.endswith("-") and len(text) > 1 else text
        found = []
        if len(checked.encode()) > bytes_max:
            found.append(f"must be no more than {bytes_max} bytes")
        if not re.fullmatch(form, checked, re.ASCII):
            found.append("must not contain dots" if dots and re.fullmatch(_SUBDOMAIN, checked, re.ASCII) else rule)
        return found

    return errors


def _label(is_prefix: bool) -> Callable[[str], list[str]]:
    return _name_errors(_LABEL, _LABEL_RULE, 63, is_prefix, dots=True)


def _subdomain(is_prefix: bool) -> Callable[[str], list[str]]:
    return _name_errors(_SUBDOMAIN, _SUBDOMAIN_RULE, 253, is_prefix)


def _label_1035(is_prefix: bool) -> Callable[[str], list[str]]:
    return _name_errors(_LABEL_1035, _LABEL_1035_RULE, 63, is_prefix)


def _uri_errors(text: str) -> list[str]:
    try:
        url(text)
    except EvaluationFailure as failure:
        return [str(failure).removeprefix("URL parse error during conversion from string: ")]
    return []


def _byte_errors(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _date_errors(text: str) -> list[str]:
    return _time_errors(f"{text}T00:00:00Z", "invalid date")


def _time_errors(text: str, message: str = "invalid datetime") -> list[str]:
    try:
        parse_timestamp(text)
    except TimeError:
        return [message]
    return []


FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", _label(False), 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain(False), 60),
    "dns1035Label": NamedFormat("DNS1035Label", _label_1035(False), 30),
    "qualifiedName": NamedFormat("QualifiedName", label_key_errors, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _label(True), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _subdomain(True), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _label_1035(True), 30),
    "labelValue": NamedFormat("LabelValue", label_value_errors, 40),
    "uri": NamedFormat("URI", _uri_errors, 1000),
    "uuid": NamedFormat("uuid", lambda text: [] if _UUID.fullmatch(text) else ["does not match the UUID format"], 100),
    "byte": NamedFormat("byte", _byte_errors, 100),
    "date": NamedFormat("date", _date_errors, 100),
    "datetime": NamedFormat("datetime", _time_errors, 100),
}


def _constant(form: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: form


def named_format(name: str) -> Optional:
    form = FORMATS.get(name)
    return NONE if form is None else Optional(form)


NETWORK_ROWS = [
    OverloadRow("url(string): url", url),
    OverloadRow("(url).getScheme(): string", lambda address: address.scheme),
    OverloadRow("(url).getHost(): string", lambda address: address.host),
    OverloadRow("(url).getHostname(): string", lambda address: address.hostname),
    OverloadRow("(url).getPort(): string", lambda address: address.port),
    OverloadRow("(url).getEscapedPath(): string", lambda address: address.escaped_path),
    OverloadRow("(url).getQuery(): map(string, list(string))", query_of),
    OverloadRow("isURL(string): bool", _succeeds(url)),
    OverloadRow("ip(string): ip", ip),
    OverloadRow("(cidr).ip(): ip", lambda network: IpAddress(network.interface.ip)),
    OverloadRow("ip.isCanonical(string): bool", lambda text: str(ip(text).address) == text),
    OverloadRow("isIP(string): bool", _succeeds(ip)),
    OverloadRow("(ip).family(): int", lambda value: value.address.version),
    OverloadRow("(ip).isUnspecified(): bool", lambda value: value.address.is_unspecified),
    OverloadRow("(ip).isLoopback(): bool", lambda value: value.address.is_loopback),
    OverloadRow("(ip).isLinkLocalMulticast(): bool", lambda value: _is_link_local_multicast(value.address)),
    OverloadRow("(ip).isLinkLocalUnicast(): bool", lambda value: value.address.is_link_local),
    OverloadRow("(ip).isGlobalUnicast(): bool", lambda value: _is_global_unicast(value.address)),
    OverloadRow("cidr(string): cidr", cidr),
    OverloadRow("(cidr).containsIP(string): bool", contains_ip),
    OverloadRow("(cidr).containsIP(ip): bool", contains_ip),
    OverloadRow("(cidr).containsCIDR(string): bool", contains_cidr),
    OverloadRow("(cidr).containsCIDR(cidr): bool", contains_cidr),
    OverloadRow("(cidr).prefixLength(): int", lambda network: network.interface.network.prefixlen),
    OverloadRow("(cidr).masked(): cidr", masked),
    OverloadRow("isCIDR(string): bool", _succeeds(cidr)),
    OverloadRow("(format).validate(string): optional(list(string))", validate),
    OverloadRow("format.named(string): optional(format)", named_format),
    *(OverloadRow(f"format.{name}(): format", _constant(form)) for name, form in FORMATS.items()),
]
