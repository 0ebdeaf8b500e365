"""Kubernetes' own types: quantities, versions, and optionals (which are CEL's, but used with them).

Comes in   texts and amounts
Goes out   rows for the environment

 1. What was added or subtracted is a `ComputedQuantity`.
 2. The functions of the authorizer are declared, because Kubernetes declares them everywhere; a device selector has no
    authorizer to call them on, so they only ever refuse their arguments.
"""

from __future__ import annotations

from fractions import Fraction

from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.functions import Row
from mooring.api.cel.values import INT_MAX, INT_MIN, NONE, ComputedQuantity, Duration, Optional, Timestamp, Value
from mooring.api.cel.versions import Version, VersionError, parse_version, parse_version_leniently
from mooring.api.errors import QuantityError
from mooring.api.quantity import NANO, Format, Quantity, parse_quantity

_QUANTITY_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_QUANTITY_SUFFIX = "unable to parse quantity's suffix"


# --- quantities -------------------------------------------------------------------------------------------------


def quantity(text: str) -> Quantity:
    try:
        if text != text.strip():
            raise QuantityError(text)
        return parse_quantity(text)
    except QuantityError as error:
        raise EvaluationFailure(_QUANTITY_SUFFIX if "suffix" in str(error) else _QUANTITY_FORM) from None


def is_quantity(text: str) -> bool:
    try:
        quantity(text)
    except EvaluationFailure:
        return False
    return True


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


def is_semver(text: str, is_lenient: bool = False) -> bool:
    try:
        semver(text, is_lenient)
    except EvaluationFailure:
        return False
    return True


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


def _authorizer_row(signature: str) -> Row:
    for name in _AUTHORIZER_TYPES:
        signature = signature.replace(f"({name})", f"(kubernetes.authorization.{name})")
        signature = signature.replace(f": {name}", f": kubernetes.authorization.{name}")
    return Row(signature, _never)


ROWS = [
    *(_authorizer_row(line) for line in _AUTHORIZER_ROWS.split("\n") if line),
    Row("quantity(string): quantity", quantity),
    Row("isQuantity(string): bool", is_quantity),
    Row("sign(quantity): int", _sign),
    Row("(quantity).isGreaterThan(quantity): bool", lambda left, right: left.amount_nano > right.amount_nano),
    Row("(semver).isGreaterThan(semver): bool", lambda left, right: left.precedence > right.precedence),
    Row("(quantity).isLessThan(quantity): bool", lambda left, right: left.amount_nano < right.amount_nano),
    Row("(semver).isLessThan(semver): bool", lambda left, right: left.precedence < right.precedence),
    Row("(quantity).compareTo(quantity): int", compare_quantities),
    Row("(semver).compareTo(semver): int", Version.compared_to),
    Row("(quantity).asApproximateFloat(): double", lambda amount: float(Fraction(amount.amount_nano, NANO))),
    Row("(quantity).asInteger(): int", as_integer),
    Row("(quantity).isInteger(): bool", is_integer),
    Row("(quantity).add(quantity): quantity", add_quantities),
    Row("(quantity).add(int): quantity", lambda left, right: add_quantities(left, _whole(right))),
    Row("(quantity).sub(quantity): quantity", subtract_quantities),
    Row("(quantity).sub(int): quantity", lambda left, right: subtract_quantities(left, _whole(right))),
    Row("semver(string): semver", semver),
    Row("semver(string, bool): semver", semver),
    Row("isSemver(string): bool", is_semver),
    Row("isSemver(string, bool): bool", is_semver),
    Row("(semver).major(): int", lambda version: version.major),
    Row("(semver).minor(): int", lambda version: version.minor),
    Row("(semver).patch(): int", lambda version: version.patch),
    Row("optional.of(V): optional(V)", Optional),
    Row("optional.ofNonZeroValue(V): optional(V)", of_non_zero),
    Row("optional.none(): optional(V)", lambda: NONE),
    Row("(optional(V)).value(): V", value_of),
    Row("(optional(V)).hasValue(): bool", lambda optional: optional.has_value),
    Row("(optional(V)).or(optional(V)): optional(V)"),
    Row("(optional(V)).orValue(V): V"),
    Row("(list(V)).last(): optional(V)", lambda elements: Optional(elements[-1]) if elements else NONE),
    Row("(list(V)).first(): optional(V)", lambda elements: Optional(elements[0]) if elements else NONE),
    Row("optional.unwrap(list(optional(V))): list(V)", unwrapped),
    Row("(list(optional(V))).unwrapOpt(): list(V)", unwrapped),
]
