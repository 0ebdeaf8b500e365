"""A scalar means to us what it means to kubectl."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.yamlscalars import as_key, resolve_scalar

PREFIX = "tag:yaml.org,2002:"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        pytest.param("yes", True, id="yes is true"),
        pytest.param("y", True, id="so is y"),
        pytest.param("On", True, id="and On"),
        pytest.param("NO", False, id="NO is false"),
        pytest.param("n", False, id="so is n"),
        pytest.param("off", False, id="and off"),
        pytest.param("yEs", "yEs", id="words of mixed case are text"),
        pytest.param("", None, id="nothing is null"),
        pytest.param("~", None, id="a tilde is null"),
        pytest.param("Null", None, id="Null is null"),
        pytest.param("None", "None", id="None is text"),
        pytest.param("web", "web", id="a word is text"),
        pytest.param("0", 0, id="zero"),
        pytest.param("-7", -7, id="a negative number"),
        pytest.param("+7", 7, id="a number with a plus"),
        pytest.param("014", 12, id="a leading zero means octal"),
        pytest.param("0o14", 12, id="so does 0o"),
        pytest.param("-014", -12, id="with a sign as well"),
        pytest.param("08", 8, id="8 is no octal digit, so 08 is a float without a fraction"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("0b101", 5, id="binary"),
        pytest.param("-0b101", -5, id="negative binary"),
        pytest.param("1_000", 1000, id="underscores are dropped"),
        pytest.param("_1", "_1", id="unless they lead"),
        pytest.param("1.5", 1.5, id="a fraction"),
        pytest.param(".5", 0.5, id="a fraction without a whole"),
        pytest.param("5.", 5, id="a whole without a fraction"),
        pytest.param("1e3", 1000, id="an exponent that leaves no fraction gives an int"),
        pytest.param("16.0", 16, id="so does a fraction of zero"),
        pytest.param("1e-3", 0.001, id="an exponent that leaves one does not"),
        pytest.param("1e22", 1e22, id="a float that JSON writes with an exponent stays a float"),
        pytest.param("1e400", "1e400", id="a number beyond every float is text"),
        pytest.param("9223372036854775807", 2**63 - 1, id="the largest signed number"),
        pytest.param("18446744073709551615", 2**64 - 1, id="the largest unsigned number"),
        pytest.param("18446744073709551616", 18446744073709552000, id="beyond it, a float with the digits JSON prints"),
        pytest.param("-9223372036854775809", -9223372036854776000, id="below the smallest, a float too"),
        pytest.param("1" * 5000, "1" * 5000, id="five thousand digits are text"),
        pytest.param("2001-01-01", "2001-01-01", id="a date stays text"),
        pytest.param("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z", id="a timestamp stays text"),
        pytest.param("12:30", "12:30", id="there are no sexagesimal numbers"),
        pytest.param("500m", "500m", id="a quantity is text"),
        pytest.param("1.2.3", "1.2.3", id="a version is text"),
        pytest.param(".", ".", id="a lone dot is text"),
        pytest.param("-", "-", id="a lone minus is text"),
        pytest.param("=", "=", id="an equals sign is text"),
    ],
)
def test_a_plain_scalar_is_resolved(text: str, meaning: object) -> None:
    resolved = resolve_scalar(text, None, is_plain=True)
    assert resolved == meaning
    assert type(resolved) is type(meaning)


@pytest.mark.parametrize("text", ["yes", "12", "", "~", ".nan"])
def test_a_quoted_scalar_is_text(text: str) -> None:
    assert resolve_scalar(text, None, is_plain=False) == text


@pytest.mark.parametrize(
    ("text", "tag", "meaning"),
    [
        pytest.param("12", PREFIX + "str", "12", id="!!str keeps a number text"),
        pytest.param("12", PREFIX + "int", 12, id="!!int reads a quoted number"),
        pytest.param("12", PREFIX + "float", 12, id="!!float of a whole number is whole in JSON"),
        pytest.param("yes", PREFIX + "bool", True, id="!!bool reads a word"),
        pytest.param("", PREFIX + "null", None, id="!!null is null"),
        pytest.param("2001-01-01", PREFIX + "timestamp", "2001-01-01", id="!!timestamp stays text"),
        pytest.param("aGFyYm91cg==", PREFIX + "binary", "harbour", id="!!binary is decoded"),
        pytest.param("12", "!mine", "12", id="an unknown tag leaves text"),
    ],
)
def test_a_tag_decides(text: str, tag: str, meaning: object) -> None:
    assert resolve_scalar(text, tag, is_plain=False) == meaning


@pytest.mark.parametrize(
    ("text", "tag", "complaint"),
    [
        pytest.param("web", PREFIX + "int", "cannot decode `web` as a !!int", id="text is no int"),
        pytest.param("true", PREFIX + "int", "cannot decode `true` as a !!int", id="true is no int"),
        pytest.param("1.5", PREFIX + "int", "cannot decode `1.5` as a !!int", id="a fraction is no int"),
        pytest.param("1", PREFIX + "bool", "cannot decode `1` as a !!bool", id="1 is no bool"),
        pytest.param("x", PREFIX + "null", "cannot decode `x` as a !!null", id="x is not null"),
        pytest.param("a", PREFIX + "binary", "!!binary value contains invalid base64 data", id="broken base64"),
    ],
)
def test_a_tag_that_the_text_contradicts_is_refused(text: str, tag: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("`", ".")):
        resolve_scalar(text, tag, is_plain=False)


@pytest.mark.parametrize("text", [".nan", ".inf", "+.INF", "-.Inf"])
def test_what_json_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a value that JSON knows"):
        resolve_scalar(text, None, is_plain=True)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        pytest.param("a", "a", id="text is itself"),
        pytest.param(80, "80", id="a number is its digits"),
        pytest.param(True, "true", id="true, however it was written"),
        pytest.param(False, "false", id="false likewise"),
        pytest.param(1.5, "1.5", id="a fraction"),
    ],
)
def test_a_key_is_text(value: object, key: str) -> None:
    assert as_key(value) == key


def test_null_is_no_key() -> None:
    with pytest.raises(ValueError, match="unsupported map key"):
        as_key(None)


@given(st.integers(-(2**63), 2**64 - 1))
def test_every_64_bit_integer_survives(number: int) -> None:
    assert resolve_scalar(str(number), None, is_plain=True) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_survives_in_value(number: float) -> None:
    resolved = resolve_scalar(repr(number), None, is_plain=True)
    assert isinstance(resolved, int | float)
    assert math.isclose(resolved, number, rel_tol=1e-15)
