"""The values of CEL, and the names of their types in error texts.

   CEL       null  bool  int  uint  double  string  bytes  list  map   type     duration  timestamp  optional
   Python    None  bool  int  Uint  float   str     bytes  list  dict  CelType  Duration  Timestamp  Optional

1. Values are immutable.
2. In CEL `bool` is not a number, but in Python it is: use `type(value)`, not `isinstance(value, int)`.
3. `==` fails if its right side is a computed quantity, as in Kubernetes v1.36, so `ComputedQuantity` is a class.
4. Versions that differ only in build metadata are equal. A version with a pre-release is lower than the same without;
   numeric identifiers of a pre-release are lower than others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface

from mooring.api.cel.types import CelType
from mooring.api.field_errors import quoted
from mooring.api.quantity import Quantity

# --- semantic versions ------------------------------------------------------------------------------------------

_NUMBERS = re.compile(r"[0-9]+")
_ALPHANUMERICS = re.compile(r"[0-9A-Za-z-]+")

_Part = tuple[int, int, str]
"""One part of a pre-release. Python compares these tuples by precedence."""


class VersionError(ValueError):
    """The text is not a version."""


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    major: int
    minor: int
    patch: int
    pre_release: tuple[_Part, ...] = ()
    precedence: tuple[int, int, int, bool, tuple[_Part, ...]] = field(init=False)

    def __post_init__(self) -> None:
        precedence = (self.major, self.minor, self.patch, not self.pre_release, self.pre_release)
        object.__setattr__(self, "precedence", precedence)

    def __eq__(self, other: object) -> bool:
        return self.precedence == other.precedence if isinstance(other, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.precedence)

    def compared_to(self, other: Version) -> int:
        return (self.precedence > other.precedence) - (self.precedence < other.precedence)


def parse_version(text: str) -> Version:
    """The version of a text, strictly by the standard."""
    if not text:
        raise VersionError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise VersionError("No Major.Minor.Patch elements found")
    major, minor = _number("major", parts[0]), _number("minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, pre_release = rest.partition("-")
    patch = _number("patch", patch_text)
    pre_release_parts = tuple(_pre_release_part(part) for part in pre_release.split(".")) if dash else ()
    if plus:
        _check_build(build)
    return Version(major, minor, patch, pre_release_parts)


def parse_version_leniently(text: str) -> Version:
    """The version of a text that may have a leading "v", leading zeros, or less than three numbers."""
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise VersionError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse_version(".".join(parts))


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped and stripped[0] in "0123456789" else "0" + stripped


def _number(name: str, text: str) -> int:
    if text and not _NUMBERS.fullmatch(text):
        raise VersionError(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise VersionError(f"{name.capitalize()} number must not contain leading zeroes {quoted(text)}")
    return _uint64(text)


def _pre_release_part(text: str) -> _Part:
    if not text:
        raise VersionError("Prerelease is empty")
    if _NUMBERS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise VersionError(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return (0, _uint64(text), "")
    if not _ALPHANUMERICS.fullmatch(text):
        raise VersionError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return (1, 0, text)


def _check_build(build: str) -> None:
    for part in build.split("."):
        if not part:
            raise VersionError("Build meta data is empty")
        if not _ALPHANUMERICS.fullmatch(part):
            raise VersionError(f"Invalid character(s) found in build meta data {quoted(part)}")


def _uint64(text: str) -> int:
    if not text:
        raise VersionError('strconv.ParseUint: parsing "": invalid syntax')
    value = read_integer(text)
    if value > UINT_MAX:
        raise VersionError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return value


# --- values -----------------------------------------------------------------------------------------------------

Value = object

INT_MAX, INT_MIN, UINT_MAX = 2**63 - 1, -(2**63), 2**64 - 1


_DIGITS_MAX = 20


def read_integer(text: str, base: int = 10) -> int:
    """The integer of a text of digits with an optional sign. Beyond 64 bits the result is some number out of range.

    Python's `int` raises for texts of more than 4,300 digits.
    """
    digits = text.lstrip("+-").lstrip("0") or "0"
    amount = int(digits, base) if len(digits) <= _DIGITS_MAX else UINT_MAX + 1
    return -amount if text.startswith("-") else amount


class Uint(int):
    """An unsigned integer. Arithmetic does not mix it with signed ones."""

    __slots__ = ()


class ComputedQuantity(Quantity):
    """The sum or difference of quantities."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Duration:
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A time, and the offset from UTC with which it is formatted."""

    nanoseconds: int
    offset_s: int = 0


@dataclass(frozen=True, slots=True)
class Optional:
    held: Value = None
    has_value: bool = True


NONE = Optional(None, has_value=False)


@dataclass(frozen=True, slots=True)
class Url:
    text: str
    scheme: str
    host: str
    hostname: str
    port: str
    escaped_path: str
    query: str


@dataclass(frozen=True, slots=True)
class IpAddress:
    address: IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Cidr:
    interface: IPv4Interface | IPv6Interface


@dataclass(frozen=True, slots=True)
class NamedFormat:
    name: str
    errors: Callable[[str], list[str]]
    regex_size: int


class DomainMap(dict[str, dict[str, Value]]):
    """Attributes or capacities by domain. An unknown domain has an empty map."""

    __slots__ = ()

    def __missing__(self, domain: str) -> dict[str, Value]:
        return _EMPTY


_EMPTY: dict[str, Value] = {}


def type_name(value: Value) -> str:
    """The name of a value's type, as in "no such overload: sign(string)"."""
    return _NAMES[type(value)][0]


def implementation_name(value: Value) -> str:
    """The Go type of a value in Kubernetes, as in "got 'types.Int', expected iterable type"."""
    return _NAMES[type(value)][1]


_NAMES: dict[type, tuple[str, str]] = {
    type(None): ("null_type", "types.Null"),
    bool: ("bool", "types.Bool"),
    int: ("int", "types.Int"),
    Uint: ("uint", "types.Uint"),
    float: ("double", "types.Double"),
    str: ("string", "types.String"),
    bytes: ("bytes", "types.Bytes"),
    list: ("list", "*types.baseList"),
    dict: ("map", "*types.baseMap"),
    DomainMap: ("map", "cel.mapper"),
    CelType: ("type", "*types.Type"),
    Duration: ("google.protobuf.Duration", "types.Duration"),
    Timestamp: ("google.protobuf.Timestamp", "types.Timestamp"),
    Optional: ("optional_type", "*types.Optional"),
    Quantity: ("kubernetes.Quantity", "cel.Quantity"),
    ComputedQuantity: ("kubernetes.Quantity", "*cel.Quantity"),
    Version: ("kubernetes.Semver", "cel.Semver"),
    Url: ("kubernetes.URL", "cel.URL"),
    IpAddress: ("net.IP", "cel.IP"),
    Cidr: ("net.CIDR", "cel.CIDR"),
    NamedFormat: ("kubernetes.NamedFormat", "cel.Format"),
}
