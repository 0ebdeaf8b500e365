"""Manifests are parsed as kubectl parses them, and errors name the line."""

import contextlib
import json
import math
import textwrap

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.errors import ObjectError
from mooring.api.yaml import NESTING_MAX, YamlError, as_key, load_document, load_documents, resolve_scalar


def data_of(text: str) -> object:
    return load_document(textwrap.dedent(text)).data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        pytest.param("a: [1, two, yes]", {"a": [1, "two", True]}, id="plain scalars have types"),
        pytest.param("a: ['1', \"two\", 'yes']", {"a": ["1", "two", "yes"]}, id="quoted ones are text"),
        pytest.param("80: http\non: true\n", {"80": "http", "true": True}, id="keys become text"),
        pytest.param("a: |\n  x\n  y\n", {"a": "x\ny\n"}, id="block text keeps its lines"),
        pytest.param("a:\n- b\n- c: 1\n  d:\n", {"a": ["b", {"c": 1, "d": None}]}, id="lists and mappings nest"),
        pytest.param("[1, 2]", [1, 2], id="a document may be a list"),
        pytest.param("{a: 1}", {"a": 1}, id="braces are not always JSON"),
        pytest.param('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}, id="JSON's surrogate pairs are read as JSON"),
        pytest.param('{\n\t"a": 2.0\n}', {"a": 2.0}, id="JSON may be indented by tabs, and its floats stay floats"),
        pytest.param("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}, id="an alias repeats its anchor"),
        pytest.param("a: &x 5\nb: [*x]\n", {"a": 5, "b": [5]}, id="a scalar can be an anchor"),
        pytest.param(
            "a: &x {b: 1, c: 2}\nd:\n  c: 3\n  <<: *x\n",
            {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}},
            id="a merge yields to what is written",
        ),
        pytest.param(
            "d:\n  <<: [{a: 1, b: 1}, {b: 2, c: 2}]\n",
            {"d": {"a": 1, "b": 1, "c": 2}},
            id="of several merges, the first wins",
        ),
        pytest.param("'<<': 3", {"<<": 3}, id="quoted, << is a key like any other"),
        pytest.param("a: !mine {b: !yours 1}", {"a": {"b": "1"}}, id="tags that nobody knows are ignored"),
    ],
)
def test_documents_are_parsed(text: str, data: object) -> None:
    assert data_of(text) == data


def test_the_order_of_keys_is_the_order_of_the_text() -> None:
    found = data_of("z: 1\na: 2\nm: 3\n")
    assert isinstance(found, dict)
    assert list(found) == ["z", "a", "m"]


def test_an_alias_is_a_copy() -> None:
    found = data_of("a: &x {b: []}\nc: *x\n")
    assert isinstance(found, dict)
    found["a"]["b"].append(1)
    assert found["c"] == {"b": []}


def test_several_documents_have_line_numbers() -> None:
    documents = load_documents("# a comment\na: 1\n---\n---\n# nothing here\n---\nb: 2\n...\n---\nnull\n", "two.yaml")
    assert [(document.data, document.line, document.file) for document in documents] == [
        ({"a": 1}, 2, "two.yaml"),
        ({"b": 2}, 7, "two.yaml"),
    ]


def test_several_json_documents_have_line_numbers() -> None:
    documents = load_documents('{"a": 1}\n\n{"b":\n 2}\n')
    assert [(document.data, document.line) for document in documents] == [({"a": 1}, 1), ({"b": 2}, 3)]
    assert documents[1].line_of("b") == 3


def test_bytes_may_carry_a_byte_order_mark() -> None:
    assert load_document("\ufeffa: ü".encode()).data == {"a": "ü"}


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        pytest.param("a: 1\nb: 2\na: 3\n", 3, 'key "a" already set in map', id="a key twice"),
        pytest.param('{"a": 1,\n"a": 2}', 2, 'key "a" already set in map', id="a key twice in JSON"),
        pytest.param("1: x\n'1': y\n", 2, 'key "1" already set in map', id="a key twice, as a number and as text"),
        pytest.param("a: 1\n b: 2\n", 2, "mapping values are not allowed", id="bad indentation"),
        pytest.param("a:\n\t- b\n", 2, "found character that cannot start any token", id="a tab"),
        pytest.param('{"a": 1', 1, "did not find expected", id="JSON that ends too early"),
        pytest.param("a: 1\nb: *x\n", 2, "unknown anchor 'x' referenced", id="an alias without an anchor"),
        pytest.param("a:\n  b: &x\n    c: *x\n", 3, "anchor 'x' value contains itself", id="an alias of itself"),
        pytest.param("a: .nan", 1, "expected a JSON value", id="not a number"),
        pytest.param("a:\n  b: !!int x\n", 2, "cannot decode `x` as a !!int", id="a tag that lies"),
        pytest.param("~: 1", 1, "unsupported map key: expected text, found null", id="null as a key"),
        pytest.param("? [a]\n: b\n", 1, "invalid map key", id="a list as a key"),
        pytest.param("<<: 3", 1, "map merge requires map or sequence of maps", id="merging a number"),
        pytest.param(
            "<<: [{a: 1}, 3]", 1, "map merge requires map or sequence of maps", id="merging a number in a list"
        ),
        pytest.param("a: 1\nb: '\x07'", 2, "control characters are not allowed", id="a control character"),
        pytest.param("a: \ud83d", 1, "expected UTF-8 text", id="half a surrogate pair"),
        pytest.param('{"a":\n"\\ud83d"}', 2, "invalid Unicode character", id="half a surrogate pair, escaped in JSON"),
    ],
)
def test_invalid_documents_are_rejected_with_the_line(text: str, line: int, complaint: str) -> None:
    with pytest.raises(YamlError) as caught:
        load_documents(text, "harbour.yaml")
    assert caught.value.line == line
    assert complaint in caught.value.text
    assert str(caught.value) == f"harbour.yaml:{line}: {caught.value.text}"
    assert isinstance(caught.value, ObjectError)


def test_bytes_that_are_not_utf_8_are_rejected() -> None:
    with pytest.raises(YamlError, match="expected UTF-8 text"):
        load_documents(b"a: \xff")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="brackets"),
        pytest.param("{a: " * 100_000, id="braces"),
        pytest.param("- " * 1_000 + "x", id="dashes"),
        pytest.param('{"a":' * 100_000, id="JSON"),
        pytest.param("a: &a " + "[" * 200 + "]" * 200 + "\nb: " + "[" * 100 + "*a" + "]" * 100, id="an alias in depth"),
    ],
)
def test_nesting_is_limited(text: str) -> None:
    with pytest.raises(YamlError, match=f"nested deeper than {NESTING_MAX} levels"):
        load_documents(text)


def test_the_expansion_of_aliases_is_limited() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]" for before, after in zip("abcdefgh", "bcdefghi")]
    with pytest.raises(YamlError, match="document contains excessive aliasing"):
        load_documents("\n".join(lines))


def test_aliases_within_the_limit_are_accepted() -> None:
    documents = load_documents("a: &a {x: 1}\nb: [" + ", ".join(["*a"] * 300) + "]\n")
    assert isinstance(documents[0].data, dict)
    assert documents[0].data["b"] == [{"x": 1}] * 300


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        pytest.param("# empty\n", 1, "expected one document, found none", id="none"),
        pytest.param("a: 1\n---\nb: 2\n", 3, "expected one document, found 2", id="two"),
    ],
)
def test_a_single_document_is_required(text: str, line: int, complaint: str) -> None:
    with pytest.raises(YamlError, match=complaint) as caught:
        load_document(text)
    assert caught.value.line == line


PROFILES = """\
# first
kind: Other
---
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    score: {enabled: [{name: A}]}
- schedulerName: second
  labels:
    example.com/tier.one: web
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        pytest.param("kind", 4, id="a field"),
        pytest.param("profiles", 5, id="a list is where its key is"),
        pytest.param("profiles[1].schedulerName", 9, id="a field of an item"),
        pytest.param("profiles[0].plugins.score.enabled[0].name", 8, id="a field in braces"),
        pytest.param("profiles[1].labels.example.com/tier.one", 11, id="a key with dots in it"),
        pytest.param("profiles[1].labels[example.com/tier.one]", 11, id="a key in brackets"),
        pytest.param("profiles[1].plugins.score", 9, id="a field that is missing: its nearest parent"),
        pytest.param("profiles[7]", 5, id="an item that is missing: the list"),
        pytest.param("profiles[one]", 5, id="an item that is none"),
        pytest.param("kind.deeper", 4, id="a field of a scalar: the scalar"),
        pytest.param("", 4, id="no path: the document"),
        pytest.param("nothing", 4, id="nothing at all: the document"),
    ],
)
def test_the_line_of_a_field_can_be_found(path: str, line: int) -> None:
    assert load_documents(PROFILES)[1].line_of(path) == line


def test_a_line_in_json_that_yaml_cannot_read_is_that_of_the_document() -> None:
    document = load_document('\n{"a": "\\ud83d\\ude00",\n "b": 1}')
    assert document.line_of("b") == 2


SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8"))
JSON_LIKE = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc<~.", min_size=1), JSON_LIKE, min_size=1, max_size=4))
def test_json_is_read_back(data: dict[str, object]) -> None:
    assert load_document(json.dumps(data)).data == data


@given(st.dictionaries(st.text("abc<~.", min_size=1), JSON_LIKE, min_size=1, max_size=4))
def test_yaml_in_which_all_text_is_quoted_is_read_back(data: dict[str, object]) -> None:
    class QuotingDumper(yaml.SafeDumper):
        pass

    QuotingDumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, '"'))
    assert load_document(yaml.dump(data, Dumper=QuotingDumper)).data == data


@given(st.text())
def test_random_text_is_parsed_or_a_yaml_error(text: str) -> None:
    with contextlib.suppress(YamlError):
        assert all(document.line >= 1 for document in load_documents(text))


# --- A scalar means to us what it means to kubectl -------------------------------------------------------------------


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
def test_tags_determine_the_type(text: str, tag: str, meaning: object) -> None:
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
def test_a_tag_that_does_not_match_its_text_is_rejected(text: str, tag: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("`", ".")):
        resolve_scalar(text, tag, is_plain=False)


@pytest.mark.parametrize("text", [".nan", ".inf", "+.INF", "-.Inf"])
def test_values_that_json_does_not_have_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="expected a JSON value"):
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
def test_keys_are_texts(value: object, key: str) -> None:
    assert as_key(value) == key


def test_null_keys_are_rejected() -> None:
    with pytest.raises(ValueError, match="unsupported map key"):
        as_key(None)


@given(st.integers(-(2**63), 2**64 - 1))
def test_64_bit_integers_are_read_back(number: int) -> None:
    assert resolve_scalar(str(number), None, is_plain=True) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_read_back(number: float) -> None:
    resolved = resolve_scalar(repr(number), None, is_plain=True)
    assert isinstance(resolved, int | float)
    assert math.isclose(resolved, number, rel_tol=1e-15)
