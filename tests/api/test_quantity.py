"""Quantities: parsing, rounding, printing."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api import quantity as quantity_module
from mooring.api.errors import QuantityError
from mooring.api.quantity import (
    EXPONENT_MAX,
    INT64_MAX,
    INT64_MIN,
    NANO,
    TEXT_LENGTH_MAX,
    Format,
    Quantity,
    milli_of_nano,
    parse_quantity,
    quantity_milli,
    quantity_nano,
    quantity_value,
    value_of_nano,
)
from mooring.api.views.meta import RawQuantity

DECIMAL, BINARY, EXPONENT = Format.DECIMAL_SI, Format.BINARY_SI, Format.DECIMAL_EXPONENT


@pytest.mark.parametrize(
    ("raw", "amount", "form"),
    [
        ("0", "0", DECIMAL),
        ("0Ki", "0", BINARY),
        ("5n", "0.000000005", DECIMAL),
        ("4u", "0.000004", DECIMAL),
        ("3m", "0.003", DECIMAL),
        ("9", "9", DECIMAL),
        ("50k", "50000", DECIMAL),
        ("7M", "7000000", DECIMAL),
        ("6G", "6000000000", DECIMAL),
        ("5T", "5000000000000", DECIMAL),
        ("2P", "2000000000000000", DECIMAL),
        ("1E", "1000000000000000000", DECIMAL),
        ("1Ki", "1024", BINARY),
        ("7Mi", str(7 << 20), BINARY),
        ("6Gi", str(6 << 30), BINARY),
        ("5Ti", str(5 << 40), BINARY),
        ("4Pi", str(4 << 50), BINARY),
        ("3Ei", str(3 << 60), BINARY),
        ("1e3", "1000", EXPONENT),
        ("1E6", "1000000", EXPONENT),
        ("1E-3", "0.001", EXPONENT),
        ("1.3E+6", "1300000", EXPONENT),
        ("0.5e-1", "0.05", EXPONENT),
        ("100.035k", "100035", DECIMAL),
        ("3.5Gi", str(7 << 29), BINARY),
        ("100.035Ki", "102435.84", BINARY),
        (".5", "0.5", DECIMAL),
        ("1.", "1", DECIMAL),
        ("1.G", "1000000000", DECIMAL),
        ("+250m", "0.25", DECIMAL),
        ("-1.5", "-1.5", DECIMAL),
        (" 2 ", "2", DECIMAL),
        (2, "2", DECIMAL),
        (0.5, "0.5", DECIMAL),
        (1e22, "10000000000000000000000", EXPONENT),
    ],
    ids=str,
)
def test_parse_quantity(raw: RawQuantity, amount: str, form: Format) -> None:
    parsed = parse_quantity(raw)
    assert parsed.amount_nano == Decimal(amount) * NANO
    assert parsed.format is form


@pytest.mark.parametrize(
    ("raw", "nano"),
    [
        ("3.001n", 4),
        ("0.9n", 1),
        ("0.0000000001", 1),
        ("1.1E-9", 2),
        ("0.00000012345", 124),
        ("-0.9n", -1),
        ("1e-400", 1),
        ("1e-4000", 1),
    ],
)
def test_amounts_below_a_nano_are_rounded_away_from_zero(raw: str, nano: int) -> None:
    assert parse_quantity(raw).amount_nano == nano


@pytest.mark.parametrize("raw", ["9Ei", "9223372036854775807Ki", "8Ei"])
def test_binary_amounts_are_capped(raw: str) -> None:
    assert parse_quantity(raw).value() == INT64_MAX
    assert parse_quantity(f"-{raw}").value() == -INT64_MAX


def test_a_tiny_binary_amount_becomes_a_decimal_one() -> None:
    assert parse_quantity("0.000000000001Ki") == Quantity(2)
    assert parse_quantity("0.0001Ki").format is DECIMAL


@pytest.mark.parametrize(
    "letters", ["+", "-", ".", "Ki", "m", "e3"], ids=["plus", "minus", "dot", "suffix", "milli", "exponent"]
)
def test_a_quantity_without_digits_is_zero_as_in_kubernetes(letters: str) -> None:
    assert parse_quantity(letters) == Quantity(0)


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ("", "must match the regular expression"),
        ("12 apples", "must match the regular expression"),
        ("1.1.M", "must match the regular expression"),
        ("1+1.0M", "must match the regular expression"),
        ("aoeu", "must match the regular expression"),
        ("1e3.5", "must match the regular expression"),
        ("٣", "must match the regular expression"),
        ("1i", "unable to parse quantity's suffix"),
        ("0.1mi", "unable to parse quantity's suffix"),
        ("1Kii", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        ("-3.01e-", "unable to parse quantity's suffix"),
        ("1Ki3", "unable to parse quantity's suffix"),
        (f"1e{EXPONENT_MAX + 1}", "exponent is larger than"),
        ("9" * (TEXT_LENGTH_MAX + 1), "more than 400 characters"),
    ],
)
def test_invalid_quantities_are_rejected(raw: str, complaint: str) -> None:
    with pytest.raises(QuantityError) as raised:
        parse_quantity(raw)
    assert complaint in str(raised.value)
    assert raw[:20] in str(raised.value)


@pytest.mark.parametrize(
    ("raw", "value", "milli"),
    [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("1m", 1, 1),
        ("1u", 1, 1),
        ("1500m", 2, 1500),
        ("1.0001", 2, 1001),
        ("-1500m", -2, -1500),
        ("-1u", -1, -1),
        ("1Gi", 1 << 30, 1000 << 30),
        ("8E", 8 * 10**18, INT64_MAX),
        ("100E", INT64_MAX, INT64_MAX),
        ("-100E", INT64_MIN, INT64_MIN),
        (3, 3, 3000),
        (0.1, 1, 100),
    ],
    ids=str,
)
def test_values_round_away_from_zero_and_stop_at_64_bits(raw: RawQuantity, value: int, milli: int) -> None:
    for _ in ("worked out", "remembered"):
        assert quantity_value(raw) == value
        assert quantity_milli(raw) == milli
        assert quantity_nano(raw) == parse_quantity(raw).amount_nano


@pytest.mark.parametrize(
    ("raw", "printed"),
    [
        ("0", "0"),
        ("00", "0"),
        ("0Gi", "0"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("0.5", "500m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1024", "1024"),
        ("100000", "100k"),
        ("2.5P", "2500T"),
        ("1024Ki", "1Mi"),
        ("1025Mi", "1025Mi"),
        ("8Mi", "8Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1.5Ki", "1536"),
        ("100.035Ki", "102435840m"),
        ("1e3", "1e3"),
        ("10e3", "10e3"),
        ("1000e3", "1e6"),
        ("12e4", "120e3"),
        ("1e0", "1e0"),
        ("10000e-4", "1"),
        ("-1500m", "-1500m"),
        ("-2048Ki", "-2Mi"),
        ("3.001n", "4n"),
        ("2000E", "2000E"),
        # What looks canonical on a quick look is kept as it was written.
        ("2.125G", "2.125G"),
        ("1.250", "1.250"),
        ("+5Mi", "+5Mi"),
    ],
)
def test_printing_follows_kubernetes(raw: str, printed: str) -> None:
    assert str(parse_quantity(raw)) == printed


def test_results_of_arithmetic_are_canonical() -> None:
    assert str(parse_quantity("2.125G") + Quantity(0)) == "2125M"
    assert str(-parse_quantity("+5Mi")) == "-5Mi"


def test_a_sum_that_starts_from_zero_takes_the_format_of_what_is_added() -> None:
    assert str(parse_quantity("0") + parse_quantity("2Ki")) == "2Ki"
    assert str(parse_quantity("0") - parse_quantity("2Ki")) == "-2Ki"
    assert str(parse_quantity("1") + parse_quantity("2047")) == "2048"


def test_quantities_compare_by_amount() -> None:
    assert parse_quantity("1") == parse_quantity("1000m")
    assert hash(parse_quantity("1Ki")) == hash(parse_quantity("1024"))
    assert parse_quantity("1G") < parse_quantity("1Gi") <= parse_quantity("1024Mi")
    assert max(parse_quantity("2"), parse_quantity("1500m")) == parse_quantity("2")
    assert parse_quantity("1") != "1"
    assert not parse_quantity("0m")
    assert parse_quantity("1n")


def test_the_cache_of_quantities_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantity_module._values, "size_max", 8)
    quantity_module._values.clear()
    assert [quantity_value(str(number)) for number in range(100)] == list(range(100))
    assert len(quantity_module._values) <= 8


nanos = st.integers(min_value=-(10**32), max_value=10**32)
digits = st.from_regex(r"[0-9]{1,12}(\.[0-9]{0,12})?", fullmatch=True)
decimal_suffixes = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
    "e5": 5,
    "E-2": -2,
}


@given(number=digits, suffix=st.sampled_from(sorted(decimal_suffixes)), sign=st.sampled_from(["", "+", "-"]))
def test_decimal_texts_agree_with_decimal_arithmetic(number: str, suffix: str, sign: str) -> None:
    exact = Decimal(number).scaleb(decimal_suffixes[suffix]) * NANO
    rounded = int(exact.to_integral_value(rounding="ROUND_UP"))
    assert parse_quantity(sign + number + suffix).amount_nano == (-rounded if sign == "-" else rounded)


@given(nano=nanos, form=st.sampled_from(Format))
def test_printed_quantities_parse_to_the_same_amount(nano: int, form: Format) -> None:
    quantity = Quantity(nano, form)
    if form is not BINARY or abs(nano) <= INT64_MAX * NANO:  # larger binary amounts are capped when they are read
        assert parse_quantity(str(quantity)) == quantity


@given(left=nanos, right=nanos)
def test_addition_and_subtraction_are_exact(left: int, right: int) -> None:
    total = Quantity(left) + Quantity(right)
    assert total.amount_nano == left + right
    assert total - Quantity(right) == Quantity(left)


@given(nano=nanos)
def test_rounding_adds_less_than_one(nano: int) -> None:
    for rounded, unit in ((value_of_nano(nano), NANO), (milli_of_nano(nano), NANO // 1000)):
        if INT64_MIN < rounded < INT64_MAX:
            assert 0 <= abs(rounded) * unit - abs(nano) < unit
            assert rounded * nano >= 0
