"""Quantities: exact amounts such as "500m", "2Gi" and "1.5e3".

Input: the texts and numbers of resource lists (`RawQuantity`). Output: a `Quantity` for arithmetic and printing;
`quantity_value`, `quantity_milli` and `quantity_nano` for hot paths, which need integers and see few different texts.

 1. An amount is a whole number of nano-units of any size. Anything finer is rounded away from zero when it is parsed,
    so that a positive request stays positive.
 2. `value` and `milli_value` also round away from zero, and are limited to 64 bits, which is what the columns hold.
    kube-scheduler wraps around there; an amount of that size has no meaning in either.
 3. Quantities are compared by amount: "1" equals "1000m". The format only decides how the amount is printed.
 4. An amount with a binary suffix is limited to 2^63-1 when it is parsed, as in Kubernetes; a decimal one is not.
 5. `str` prints as Kubernetes does, including its shortcut: a text that looks canonical is printed as it was written
    ("2.125G") until arithmetic changes the quantity.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from functools import total_ordering

from mooring.api.caches import BoundedCache
from mooring.api.errors import QuantityError
from mooring.api.views.meta import RawQuantity

INT64_MAX = 2**63 - 1
MILLI_VALUE_MAX = INT64_MAX // 1000
"""Larger amounts have no milli value of 64 bits."""
INT64_MIN = -(2**63)
NANO = 10**9
NANO_IN_MILLI = 10**6

EXPONENT_MAX = 400
"""Larger decimal exponents are rejected: the number would have thousands of digits."""

TEXT_LENGTH_MAX = 400
"""Longer texts are rejected without parsing, for the same reason."""

TEXTS_REMEMBERED_MAX = 65_536
"""A cluster writes a few thousand different ones."""


class Format(enum.StrEnum):
    """How a quantity is printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount, and how to print it."""

    amount_nano: int
    format: Format = Format.DECIMAL_SI
    written: str = field(default="", repr=False)

    def value(self) -> int:
        """In whole units, rounded away from zero."""
        return value_of_nano(self.amount_nano)

    def milli_value(self) -> int:
        """In thousandths, rounded away from zero."""
        return milli_of_nano(self.amount_nano)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount_nano + other.amount_nano, self._format_with(other))

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount_nano - other.amount_nano, self._format_with(other))

    def __neg__(self) -> Quantity:
        return Quantity(-self.amount_nano, self.format)

    def __bool__(self) -> bool:
        return self.amount_nano != 0

    def __eq__(self, other: object) -> bool:
        return self.amount_nano == other.amount_nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.amount_nano < other.amount_nano

    def __hash__(self) -> int:
        return hash(self.amount_nano)

    def __str__(self) -> str:
        return self.written or _canonical(self.amount_nano, self.format)

    def _format_with(self, other: Quantity) -> Format:
        # A sum that starts from zero takes the format of what is added: an empty total has no opinion.
        return self.format if self.amount_nano else other.format


ZERO = Quantity(0)


def parse_quantity(raw: RawQuantity) -> Quantity:
    """The quantity of a text or of a JSON number."""
    text = raw.strip() if isinstance(raw, str) else repr(raw)
    if len(text) > TEXT_LENGTH_MAX:
        raise QuantityError(f'"{text[:20]}..." is not a quantity: it has more than {TEXT_LENGTH_MAX} characters')
    parts = _FORM.fullmatch(text)
    if not text or parts is None:
        raise QuantityError(f'"{text}" is not a quantity: {_FORM_EXPECTED}')
    whole, fraction, suffix = parts["whole"].lstrip("0") or "0", parts["fraction"] or "", parts["suffix"]
    if suffix in _BINARY_EXPONENTS:
        amount_nano, form, written = _binary_amount(text, whole, fraction, _BINARY_EXPONENTS[suffix])
    else:
        amount_nano, form, written = _decimal_amount(text, whole, fraction, suffix)
    return Quantity(-amount_nano if parts["sign"] == "-" else amount_nano, form, written)


def quantity_value(raw: RawQuantity) -> int:
    """`parse_quantity(raw).value()`, remembered."""
    value = _values.get(raw)
    return value if value is not None else _values.put(raw, parse_quantity(raw).value())


def quantity_milli(raw: RawQuantity) -> int:
    """`parse_quantity(raw).milli_value()`, remembered."""
    value = _millis.get(raw)
    return value if value is not None else _millis.put(raw, parse_quantity(raw).milli_value())


def quantity_nano(raw: RawQuantity) -> int:
    """`parse_quantity(raw).amount_nano`, remembered. Sums of these are exact; round once, when the sum is complete."""
    value = _nanos.get(raw)
    return value if value is not None else _nanos.put(raw, parse_quantity(raw).amount_nano)


def value_of_nano(amount_nano: int) -> int:
    """In whole units, rounded away from zero."""
    return _within_int64(_divided_away_from_zero(amount_nano, NANO))


def milli_of_nano(amount_nano: int) -> int:
    """In thousandths, rounded away from zero."""
    return _within_int64(_divided_away_from_zero(amount_nano, NANO_IN_MILLI))


# --- reading ----------------------------------------------------------------------------------------------------

_FORM = re.compile(r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE](?P<exponent>[+-]?[0-9]+)")
_FORM_EXPECTED = (
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' (such as 500m or 1.5Gi)"
)
_SUFFIX_EXPECTED = (
    "unable to parse quantity's suffix "
    "(expected n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3)"
)
_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

_values: BoundedCache[RawQuantity, int] = BoundedCache(TEXTS_REMEMBERED_MAX)
_millis: BoundedCache[RawQuantity, int] = BoundedCache(TEXTS_REMEMBERED_MAX)
_nanos: BoundedCache[RawQuantity, int] = BoundedCache(TEXTS_REMEMBERED_MAX)


def _decimal_amount(text: str, whole: str, fraction: str, suffix: str) -> tuple[int, Format, str]:
    exponent, form = _decimal_exponent(text, suffix)
    digits = whole + fraction
    scale = exponent - len(fraction)
    shift = scale + 9
    amount_nano = int(digits) * 10**shift if shift >= 0 else _divided_away_from_zero(int(digits), 10**-shift)
    fits_int64 = len(digits) <= 18
    looks_canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return amount_nano, form, text if text == "0" or (fits_int64 and shift >= 0 and looks_canonical) else ""


def _decimal_exponent(text: str, suffix: str) -> tuple[int, Format]:
    exponent = _DECIMAL_EXPONENTS.get(suffix)
    if exponent is not None:
        return exponent, Format.DECIMAL_SI
    written = _EXPONENT.fullmatch(suffix)
    if written is None:
        raise QuantityError(f'"{text}" is not a quantity: {_SUFFIX_EXPECTED}')
    # Anything below the smallest exponent is rounded up to a nano all the same.
    exponent = max(int(written["exponent"]), -EXPONENT_MAX)
    if exponent > EXPONENT_MAX:
        raise QuantityError(f'"{text}" is not a quantity: its exponent is larger than {EXPONENT_MAX}')
    return exponent, Format.DECIMAL_EXPONENT


def _binary_amount(text: str, whole: str, fraction: str, exponent: int) -> tuple[int, Format, str]:
    scaled = (int(whole + fraction) << exponent) * NANO
    amount_nano = min(_divided_away_from_zero(scaled, 10 ** len(fraction)), INT64_MAX * NANO)
    if 0 < amount_nano < NANO:
        return amount_nano, Format.DECIMAL_SI, ""
    fits_int64 = not fraction and len(whole) + exponent * 3 // 10 <= 14
    looks_canonical = int(whole) % 8 != 0
    return amount_nano, Format.BINARY_SI, text if fits_int64 and looks_canonical else ""


# --- printing ---------------------------------------------------------------------------------------------------

_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES = ["", *_BINARY_EXPONENTS]
_DECIMAL_EXPONENT_MAX = max(_DECIMAL_SUFFIXES)


def _canonical(amount_nano: int, form: Format) -> str:
    """The shortest integer with a suffix that has exactly this value."""
    if amount_nano == 0:
        return "0"
    is_whole = amount_nano % NANO == 0
    if form is Format.BINARY_SI and is_whole and abs(amount_nano) >= 1024 * NANO:
        return _canonical_binary(amount_nano // NANO)
    # A binary amount that is small or fractional is printed as a decimal one rather than rounded.
    number, exponent = _without_factors(amount_nano, 1000, 0)
    exponent = exponent * 3 - 9
    if form is Format.DECIMAL_EXPONENT:
        return f"{number}e{exponent}" if exponent else str(number)
    surplus = max(exponent - _DECIMAL_EXPONENT_MAX, 0)
    return f"{number * 10**surplus}{_DECIMAL_SUFFIXES[exponent - surplus]}"


def _canonical_binary(value: int) -> str:
    number, exponent = _without_factors(value, 1024, len(_BINARY_SUFFIXES) - 1)
    return f"{number}{_BINARY_SUFFIXES[exponent]}"


def _without_factors(number: int, factor: int, times_max: int) -> tuple[int, int]:
    """The number divided by the factor as often as that leaves no remainder, and how often. 0 means no maximum."""
    times = 0
    while number % factor == 0 and (times < times_max or not times_max):
        number //= factor
        times += 1
    return number, times


# --- arithmetic -------------------------------------------------------------------------------------------------


def _divided_away_from_zero(amount: int, divisor: int) -> int:
    return -(-amount // divisor) if amount >= 0 else amount // divisor


def _within_int64(value: int) -> int:
    return max(INT64_MIN, min(value, INT64_MAX))
