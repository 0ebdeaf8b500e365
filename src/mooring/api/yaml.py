"""Parse YAML or JSON manifests, as kubectl does.

Input: text or bytes with any number of documents, and the name of the file for messages. Output: `YamlDocument`s: plain
data, and the line of the document and of any field in it.

 1. Scalars follow the YAML 1.1 of kubectl: `yes`, `on` and `y` are true, `014` and `0o14` are 12, `1_000` is 1000, and
    a date stays a string. Sexagesimal numbers (`12:30`) do not exist.
 2. The result is JSON: every key is a string (`80:` becomes "80"), a number without a fraction is an int (`16.0` is 16,
    as after a conversion to JSON), and `.nan` and `.inf` are errors.
 3. A key that appears twice in one mapping is an error. A key of a merge (`<<`) yields to an explicit one.
 4. Everything is limited: nesting by `NESTING_MAX`, the data that aliases add by `_alias_share_allowed`, so that a
    small file cannot use much memory.
 5. A document without content is skipped.

Why not PyYAML's constructor? It composes recursively in C, and 100,000 brackets crash the interpreter. Building from
parser events needs no recursion, counts as it goes, and is one pass instead of two.

The value of a YAML scalar, as kubectl resolves it: `yes` is true, a date is a string.

Input: the text of a scalar, its tag if there is one, and whether it is plain (neither quoted nor tagged). Output: a
string, a bool, an int, a float or None; and the string of such a value as a key of a mapping.

 1. Words are matched as a whole (`Yes`, but not `yEs`). Numbers are tried in the order int, float, string.
 2. Underscores in numbers are dropped. A leading 0 means octal unless a digit forbids it (`08` is the float 8).
 3. A number beyond 64 bits is a float, and one beyond every float is a string.
"""

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NoReturn

import yaml

from mooring.api.document import copied_json
from mooring.api.errors import ObjectError

NESTING_MAX = 250
"""Maximum depth of mappings and lists: code that walks the data may recurse."""

_ALIASES_HARMLESS = 100
_NODES_SMALL = 400_000
_NODES_LARGE = 4_000_000

MERGE_KEY = "<<"


class YamlError(ObjectError):
    """The text is not YAML, or not data. The message has the line and what was found."""

    def __init__(self, file: str, line: int, text: str) -> None:
        super().__init__(f"{file}:{line}: {text}")
        self.file = file
        self.line = line
        self.text = text


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document: its data, and where in the file it was found."""

    data: object
    file: str
    line: int
    _source: str = field(repr=False, compare=False)
    _number: int = field(repr=False, compare=False)
    _lines_before: int = field(repr=False, compare=False)

    def line_of(self, path: str) -> int:
        """The line of a field such as `spec.containers[0].image`, or of its nearest parent that is there.

        Composes the text again: this is called once for an error, and storing positions for every field of a large
        file to answer it would cost every reader.
        """
        root = _composed(self._source, self._number)
        return self.line if root is None else self._lines_before + _line_in(root, path)


def load_documents(text: str | bytes, file: str = "<input>") -> list[YamlDocument]:
    """Every document of a file, in order."""
    source = _as_text(text, file)
    if source.lstrip().startswith("{"):
        documents = _json_documents(source, file)
        if documents is not None:
            return documents
    return list(_yaml_documents(source, file))


def load_document(text: str | bytes, file: str = "<input>") -> YamlDocument:
    """The only document of a file, for files that hold one thing."""
    documents = load_documents(text, file)
    if len(documents) == 1:
        return documents[0]
    if not documents:
        raise YamlError(file, 1, "expected one document, found none")
    raise YamlError(file, documents[1].line, f"expected one document, found {len(documents)}")


def _as_text(text: str | bytes, file: str) -> str:
    try:
        if isinstance(text, bytes):
            return text.decode("utf-8-sig")
        text.encode("utf-8")
        return text
    except UnicodeError as error:
        raise YamlError(file, 1, f"expected UTF-8 text, found something else: {error}") from error


# Why JSON apart? It is not quite a subset: libyaml rejects the surrogate pairs of JSON's escapes. Errors of
# text that only looks like JSON come from the YAML reader, which reports the line.


def _json_documents(source: str, file: str) -> list[YamlDocument] | None:
    decoder = json.JSONDecoder(object_pairs_hook=_unique_pairs, parse_constant=_reject_constant)
    has_surrogates = "\\ud" in source or "\\uD" in source
    documents: list[YamlDocument] = []
    offset = _skip_blank(source, 0)
    while offset < len(source):
        try:
            data, end = decoder.raw_decode(source, offset)
            if has_surrogates:
                json.dumps(data, ensure_ascii=False).encode()  # half of a pair has no UTF-8: a ValueError
        except (ValueError, RecursionError):
            return None
        lines_before = source.count("\n", 0, offset)
        documents.append(YamlDocument(data, file, lines_before + 1, source[offset:end], 0, lines_before))
        offset = _skip_blank(source, end)
    return documents


def _skip_blank(source: str, offset: int) -> int:
    while offset < len(source) and source[offset] in " \t\r\n":
        offset += 1
    return offset


def _unique_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key appears twice")
    return mapping


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _yaml_documents(source: str, file: str) -> Iterator[YamlDocument]:
    loader = yaml.CSafeLoader(source)
    try:
        number = 0
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.DocumentStartEvent):
                builder = _Builder(loader, file)
                data = builder.build()
                if data is not None:
                    yield YamlDocument(data, file, builder.line, source, number, 0)
                number += 1
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        last_line = source.count("\n") + 1  # text that ends too early is missed on the line after it
        raise YamlError(file, min(line, last_line), error.problem or error.context or "not YAML") from error
    except yaml.reader.ReaderError as error:
        line = source.count("\n", 0, error.position) + 1
        raise YamlError(file, line, f"character {error.character!r}: {error.reason}") from error
    finally:
        loader.dispose()


class _Frame:
    """A mapping or a list that is still open."""

    __slots__ = ("anchor", "height", "items", "key", "key_awaited", "mapping", "merged", "size")

    def __init__(self, anchor: str | None, *, is_mapping: bool) -> None:
        self.anchor = anchor
        self.mapping: dict[str, object] | None = {} if is_mapping else None
        self.items: list[object] = []
        self.merged: list[dict[str, object]] = []
        self.key: str | None = None  # None while the value is awaited: what follows is merged
        self.key_awaited = is_mapping
        self.size = 1
        self.height = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    value: object
    size: int
    height: int


class _Builder:
    """Builds the data of one document from the events of the parser."""

    def __init__(self, loader: yaml.CSafeLoader, file: str) -> None:
        self._loader = loader
        self._file = file
        self._open: list[_Frame] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._nodes = 0
        self._nodes_from_aliases = 0
        self._root: object = None
        self.line = 0

    def build(self) -> object:
        while True:
            event = self._loader.get_event()
            assert event is not None, "the stream ended inside of a document"
            line = _line(event)
            self.line = self.line or line
            match event:
                case yaml.ScalarEvent():
                    self._scalar(event, line)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._start(event, line)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._end(line)
                case yaml.AliasEvent():
                    self._alias(event.anchor or "", line)
                case yaml.DocumentEndEvent():
                    return self._root
                case _:
                    raise AssertionError(f"the parser gave {event!r} inside of a document")

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        try:
            value = resolve_scalar(event.value, event.tag, is_plain=event.implicit[0])
        except ValueError as error:
            self._reject(line, str(error))
        self._nodes += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1, 0)
        if event.value == MERGE_KEY and event.implicit[0] and self._open and self._open[-1].key_awaited:
            self._open[-1].key = None
            self._open[-1].key_awaited = False
            return
        self._place(value, line, size=1, height=0)

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent, line: int) -> None:
        if self._open and self._open[-1].key_awaited:
            self._reject(line, "invalid map key: expected text, found a mapping or a list")
        if len(self._open) >= NESTING_MAX:
            self._reject(line, f"nested deeper than {NESTING_MAX} levels")
        self._nodes += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Frame(event.anchor, is_mapping=isinstance(event, yaml.MappingStartEvent)))

    def _end(self, line: int) -> None:
        frame = self._open.pop()
        value: object = frame.items if frame.mapping is None else _with_merged(frame.mapping, frame.merged)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = _Anchored(value, frame.size, frame.height)
        self._place(value, line, frame.size, frame.height)

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self._anchors:
            self._reject(line, f"unknown anchor '{anchor}' referenced")
        anchored = self._anchors[anchor]
        if anchored is None:
            self._reject(line, f"anchor '{anchor}' value contains itself")
        if len(self._open) + anchored.height > NESTING_MAX:
            self._reject(line, f"nested deeper than {NESTING_MAX} levels")
        self._nodes += anchored.size
        self._nodes_from_aliases += anchored.size
        if self._nodes_from_aliases > _ALIASES_HARMLESS:
            share = self._nodes_from_aliases / self._nodes
            if self._nodes > 10 * _ALIASES_HARMLESS and share > _alias_share_allowed(self._nodes):
                self._reject(line, "document contains excessive aliasing")
        self._place(copied_json(anchored.value), line, anchored.size, anchored.height)

    def _place(self, value: object, line: int, size: int, height: int) -> None:
        """Put a finished value where the innermost open mapping or list is waiting for it."""
        if not self._open:
            self._root = value
            return
        frame = self._open[-1]
        frame.size += size
        frame.height = max(frame.height, height + 1)
        if frame.mapping is None:
            frame.items.append(value)
        elif frame.key_awaited:
            frame.key = self._fresh_key(frame.mapping, value, line)
            frame.key_awaited = False
        else:
            if frame.key is None:
                frame.merged.extend(self._mergeable(value, line))
            else:
                frame.mapping[frame.key] = value
            frame.key_awaited = True

    def _fresh_key(self, mapping: dict[str, object], value: object, line: int) -> str:
        try:
            key = as_key(value)
        except ValueError as error:
            self._reject(line, str(error))
        if key in mapping:
            self._reject(line, f"key {json.dumps(key, ensure_ascii=False)} already set in map")
        mapping[key] = None  # taken from now on, so that the order of keys is the order of the text
        return key

    def _mergeable(self, value: object, line: int) -> list[dict[str, object]]:
        candidates = value if isinstance(value, list) else [value]
        mappings = [candidate for candidate in candidates if isinstance(candidate, dict)]
        if len(mappings) != len(candidates):
            self._reject(line, "map merge requires map or sequence of maps as the value")
        return mappings

    def _reject(self, line: int, text: str) -> NoReturn:
        raise YamlError(self._file, line, text)


def _line(found: yaml.Event | yaml.Node) -> int:
    return 1 if found.start_mark is None else found.start_mark.line + 1


def _with_merged(mapping: dict[str, object], merged: list[dict[str, object]]) -> dict[str, object]:
    for other in merged:
        for key, value in other.items():
            mapping.setdefault(key, value)
    return mapping


def _alias_share_allowed(nodes: int) -> float:
    """The share of a document that may come from aliases: nearly all of a small one, a tenth of a huge one."""
    if nodes <= _NODES_SMALL:
        return 0.99
    if nodes >= _NODES_LARGE:
        return 0.10
    return 0.99 - 0.89 * (nodes - _NODES_SMALL) / (_NODES_LARGE - _NODES_SMALL)


def _composed(source: str, number: int) -> yaml.Node | None:
    """The document's nodes with their positions; loading it has already shown that it is not too deep."""
    loader = yaml.CSafeLoader(source)
    try:
        for _ in range(number):
            loader.check_node()
            loader.get_node()
        return loader.get_node() if loader.check_node() else None
    except yaml.YAMLError:
        return None  # JSON that YAML cannot read
    finally:
        loader.dispose()


_STEP = re.compile(r"\[([^\]]*)\]|\.?([^.\[]+)")


def _line_in(root: yaml.Node, path: str) -> int:
    node, line = root, _line(root)
    steps = [bracket or name for bracket, name in _STEP.findall(path)]
    while steps:
        found = _child(node, steps)
        if found is None:
            break
        node, line, taken = found
        steps = steps[taken:]
    return line


def _child(node: yaml.Node, steps: list[str]) -> tuple[yaml.Node, int, int] | None:
    """The node one step further down, its line, and how many steps that took: keys may hold dots themselves."""
    if isinstance(node, yaml.SequenceNode):
        if steps[0].isdigit() and int(steps[0]) < len(node.value):
            item = node.value[int(steps[0])]
            return item, _line(item), 1
        return None
    if isinstance(node, yaml.MappingNode):
        for taken in range(1, len(steps) + 1):
            name = ".".join(steps[:taken])
            for key, value in node.value:
                if key.value == name:
                    return value, _line(key), taken
    return None


# --- scalars --------------------------------------------------------------------------------------------------


Scalar = str | bool | int | float | None

_TAG_PREFIX = "tag:yaml.org,2002:"

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}

_MAY_BE_NUMBER = frozenset("0123456789+-.")

_INTEGER = re.compile(
    r"[-+]?(?:0[xX](?P<hexadecimal>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = {"hexadecimal": 16, "binary": 2, "octal": 8, "decimal": 10}

_INTEGER_CHARACTERS_MAX = 80
"""More digits than 64 bits need in any base; Python limits the digits of integers that it parses."""

_INT64_MIN = -(2**63)
_UINT64_MAX = 2**64 - 1

_JSON_EXPONENT_FROM = 1e21
"""From here on JSON writers use an exponent, and the number is read back as a float."""


def resolve_scalar(text: str, tag: str | None, *, is_plain: bool) -> Scalar:
    """The value of a scalar; `ValueError` where the text contradicts its tag, or JSON has no such value."""
    if is_plain:
        return _json_number(_resolve_plain(text))
    if tag is None or not tag.startswith(_TAG_PREFIX):
        return text
    return _json_number(_resolve_tagged(text, tag.removeprefix(_TAG_PREFIX)))


def as_key(value: object) -> str:
    """The text of a value that is a key."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            raise ValueError("unsupported map key: expected text, found null")


def _resolve_plain(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _MAY_BE_NUMBER:
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    integer = _INTEGER.fullmatch(digits) if len(digits) <= _INTEGER_CHARACTERS_MAX else None
    if integer is not None:
        base = integer.lastgroup
        assert base is not None, f"{text!r} matched no kind of integer"
        number = int(integer[base], _BASES[base])
        number = -number if digits[0] == "-" else number
        # A sign is only read for numbers of 63 bits, so "+" and the largest numbers do not go together.
        if _INT64_MIN <= number <= (_UINT64_MAX if digits[0] != "+" else -_INT64_MIN - 1):
            return number
    if _FLOAT.fullmatch(digits):
        fraction = float(digits)
        if math.isfinite(fraction):
            return fraction
    return text


def _resolve_tagged(text: str, kind: str) -> Scalar:
    if kind == "binary":
        try:
            return base64.b64decode(text, validate=False).decode("utf-8", errors="replace")
        except binascii.Error as error:
            raise ValueError("!!binary value contains invalid base64 data") from error
    if kind not in ("bool", "int", "float", "null"):
        return text  # !!str, !!timestamp, and unknown tags
    value = _resolve_plain(text)
    fits = {
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, int | float) and not isinstance(value, bool),
        "null": value is None,
    }
    if not fits[kind]:
        raise ValueError(f"cannot decode `{text}` as a !!{kind}")
    return value


def _json_number(value: Scalar) -> Scalar:
    """The value after a conversion to JSON, which has no NaN, and does not distinguish 16.0 and 16."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ValueError(f"expected a JSON value, found {value}")
    if value.is_integer() and abs(value) < _JSON_EXPONENT_FROM:
        return int(Decimal(repr(value)))  # the digits that a JSON writer would print
    return value
