"""Values: what an expression computes with.

Comes in   literals, attributes and capacities of devices
Goes out   the value classes that Python lacks, and the two names that error texts give to the type of a value

    CEL       null  bool  int  uint  double  string  bytes  list  map   type     duration  timestamp  optional
    here      None  bool  int  Uint  float   str     bytes  list  dict  CelType  Duration  Timestamp  Optional

 1. Values are never changed once made.
 2. `bool` is not a number here although Python counts it as one: look at `type(value)`, never at `isinstance(_, int)`.
 3. A quantity that was computed does not equal one that was written when it stands on the right side: `==` fails there
    in Kubernetes v1.36, so it has a class of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface

from mooring.api.cel.types import CelType
from mooring.api.cel.versions import Version
from mooring.api.quantity import Quantity

Value = object

INT_MAX, INT_MIN, UINT_MAX = 2**63 - 1, -(2**63), 2**64 - 1


_DIGITS_MAX = 20


def read_integer(text: str, base: int = 10) -> int:
    """The integer in a text of digits with an optional sign. One beyond 64 bits is only certain to be out of range.

    Python's `int` raises for texts of more than 4,300 digits.
    """
    digits = text.lstrip("+-").lstrip("0") or "0"
    amount = int(digits, base) if len(digits) <= _DIGITS_MAX else UINT_MAX + 1
    return -amount if text.startswith("-") else amount


class Uint(int):
    """An unsigned number, which does not mix with signed ones in arithmetic."""

    __slots__ = ()


class ComputedQuantity(Quantity):
    """The result of adding or subtracting quantities."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Duration:
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A point in time, and the offset from UTC in which it was written (it matters only for printing)."""

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
    faults: Callable[[str], list[str]]
    regex_size: int


class DomainMap(dict[str, dict[str, Value]]):
    """Attributes or capacities by domain. A domain that nothing is known of is an empty one."""

    __slots__ = ()

    def __missing__(self, domain: str) -> dict[str, Value]:
        return _EMPTY


_EMPTY: dict[str, Value] = {}


def type_name(value: Value) -> str:
    """The name of a value's type, as in "no such overload: sign(string)"."""
    return _NAMES[type(value)][0]


def implementation_name(value: Value) -> str:
    """What Kubernetes calls the value in Go, as in "got 'types.Int', expected iterable type"."""
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
