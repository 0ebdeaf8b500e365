"""Tables of custom kinds, from `additionalPrinterColumns` of a version, and JSONPath in the dialect of Kubernetes.

    .field  ['field']  .*  [*]     a field, all fields
    [0]  [-1]  [1:4]  [::2]        items of a list
    [0,2]                          several items
    ..                             everything below
    [?(@.a == "b")]  [?(@.a)]      items that match

1. A kind without columns has the column `Age`.
2. A value that is absent, or not of the type of its column, is an empty cell.
3. A path is parsed once into steps. A step maps values to values.
4. An absent field has no values. An index out of bounds, or an index of a value that is no list, raises
   `JsonPathError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.apiserver.tables import NAME, Cell, KindTable, column, since
from mooring.kit.clock import TimestampError

Step = Callable[[list[Any]], list[Any]]

_TERMINATORS = frozenset(" \t\r\n.,[]$@{}")
_KEY = re.compile(r"^'([^']*)'$")
_SLICE = re.compile(r"^(-?\d*)(:-?\d*)?(:-?\d*)?$")
_COMPARISON = re.compile(r"^([^!<>=]+)([!<>=]+)(.+?)$")
_NUMBER = re.compile(r"[+-]?[\d.]+")


class JsonPathError(Exception):
    """A path that cannot be read, or that cannot be followed in an object."""


class JsonPath:
    """A path that has been read."""

    def __init__(self, text: str) -> None:
        self._steps = _JsonPathReader(text).steps()

    def find(self, value: object) -> list[Any]:
        """The values that the path leads to. Raises `JsonPathError`."""
        return _walk(self._steps, [value])


def _walk(steps: Iterable[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


# --- reading ----------------------------------------------------------------------------------------------------


class _JsonPathReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        while self._at < len(self._text):
            is_below = bool(steps) and steps[-1] is _below
            step = self._field() if is_below and self._is_at_name() else self._step()
            if step is _below and is_below:
                raise JsonPathError("invalid multiple recursive descent")
            if step is not None:
                steps.append(step)
        return steps

    def _step(self) -> Step | None:
        rest = self._text[self._at :]
        if rest.startswith("[?("):
            return self._filter()
        if rest.startswith(".."):
            self._at += 2
            return _below
        character = rest[0]
        self._at += 1
        match character:
            case " " | "@" | "$":
                return None
            case "[":
                return self._brackets()
            case '"' | "'":
                return _constant(self._quoted(character))
            case ".":
                return self._field()
            case _:
                self._at -= 1
                return self._constant(rest)

    def _is_at_name(self) -> bool:
        return self._text[self._at].isalnum() or self._text[self._at] == "_"

    def _field(self) -> Step:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _TERMINATORS:
            self._at += 2 if self._text[self._at] == "\\" else 1
        name = self._text[start : self._at]
        return _everything if name == "*" else _field(name.replace("\\", ""))

    def _constant(self, rest: str) -> Step:
        number = _NUMBER.match(rest)
        if number is not None:
            self._at += number.end()
            return _constant(_number(number[0]))
        if not self._is_at_name():
            raise JsonPathError(f"unrecognized character in action: {rest[0]!r}")
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _TERMINATORS:
            self._at += 1
        word = self._text[start : self._at]
        return _constant(word == "true") if word in ("true", "false") else _unknown_name(word)

    def _quoted(self, quote: str) -> str:
        start = self._at
        while self._at < len(self._text):
            self._at += 1
            if self._text[self._at - 1] == quote and self._text[self._at - 2] != "\\":
                return self._text[start : self._at - 1].replace(f"\\{quote}", quote).replace("\\\\", "\\")
        raise JsonPathError("unterminated quoted string")

    def _brackets(self) -> Step:
        end = self._text.find("]", self._at)
        if end < 0:
            raise JsonPathError("unterminated array")
        inside = self._text[self._at : end]
        self._at = end + 1
        parts = inside.split(",")
        if len(parts) > 1:
            return _union([_JsonPathReader(f"[{part.strip(' ')}]").steps() for part in parts])
        key = _KEY.match(inside)
        if key is not None:
            return _chain(_JsonPathReader(f".{key[1]}").steps())
        return _slice(":" if inside == "*" else inside)

    def _filter(self) -> Step:
        start = self._at = self._at + len("[?(")
        end = self._end_of_filter()
        self._at = end + len(")]")
        inside = self._text[start:end]
        comparison = _COMPARISON.match(inside)
        if comparison is None:
            return _existing(_JsonPathReader(inside).steps())
        left, operator, right = comparison.groups()
        return _Comparison(_JsonPathReader(left).steps(), operator, _JsonPathReader(right).steps())

    def _end_of_filter(self) -> int:
        quote = ""
        for index in range(self._at, len(self._text)):
            character = self._text[index]
            if quote:
                quote = "" if character == quote and self._text[index - 1] != "\\" else quote
            elif character in "\"'":
                quote = character
            elif character == ")":
                if self._text[index + 1 : index + 2] != "]":
                    raise JsonPathError("unclosed array expect ]")
                return index
        raise JsonPathError("unterminated filter")


def _number(text: str) -> int | float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise JsonPathError(f"cannot parse number {text}") from None


# --- steps ------------------------------------------------------------------------------------------------------


def _field(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _constant(constant: object) -> Step:
    return lambda values: [constant]


def _unknown_name(word: str) -> Step:
    """A path with such an identifier parses, but its evaluation fails."""

    def refuse(values: list[Any]) -> list[Any]:
        raise JsonPathError(f"unrecognized identifier {word}")

    return refuse


def _chain(steps: Sequence[Step]) -> Step:
    return lambda values: _walk(steps, values)


def _union(branches: Sequence[Sequence[Step]]) -> Step:
    return lambda values: [found for branch in branches for found in _walk(branch, values)]


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _everything(values: list[Any]) -> list[Any]:
    return [child for value in values for child in _children(value)]


def _below(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        children = _children(value)
        if children:
            found += [value, *_below(children)]
    return found


def _existing(steps: Sequence[Step]) -> Step:
    return lambda values: [item for value in values for item in _list(value) if _walk(steps, [item])]


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise JsonPathError(f"{value!r} is not array or slice and cannot be filtered")
    return value


def _slice(text: str) -> Step:
    match = _SLICE.match(text)
    if match is None or not text:
        raise JsonPathError(f"invalid array index {text}")
    start, end, step = match.groups()
    first = int(start) if start and start != "-" else 0
    # One number alone is one item: its end is the number after it, and -1 ends where the list ends.
    last = first + 1 if end is None else _bound(end)
    stride = (_bound(step) if step else None) or 1
    if stride < 0:
        raise JsonPathError("step must be > 0")

    def sliced(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is not None:
                found += _items(_list(value), first, last, is_single=end is None)[::stride]
        return found

    return sliced


def _bound(text: str) -> int | None:
    digits = text.removeprefix(":")
    return int(digits) if digits and digits != "-" else None


def _items(items: list[Any], first: int, last: int | None, *, is_single: bool) -> list[Any]:
    length = len(items)
    start = first + length if first < 0 else first
    end = length if last is None else last
    if end < 0 or (end == 0 and is_single):
        end += length
    if start == end:
        return []
    if not 0 <= start < length or not 0 <= end <= length or start > end:
        raise JsonPathError(f"array index out of bounds: {start}:{end}, length {length}")
    return items[start:end]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Items of lists for which two values compare."""

    left: Sequence[Step]
    operator: str
    right: Sequence[Step]

    def __call__(self, values: list[Any]) -> list[Any]:
        return [item for value in values for item in _list(value) if self._holds(item)]

    def _holds(self, item: object) -> bool:
        lefts, rights = _walk(self.left, [item]), _walk(self.right, [item])
        if not lefts or not rights:
            return False
        if len(lefts) > 1 or len(rights) > 1:
            raise JsonPathError("can only compare one element at a time")
        return _compare(lefts[0], self.operator, rights[0])


def _compare(left: Any, operator: str, right: Any) -> bool:
    if _family(left) != _family(right) or _family(left) is None:
        raise JsonPathError("incompatible types for comparison")
    match operator:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<" | "<=" | ">" | ">=" if not isinstance(left, bool):
            is_less, is_equal = bool(left < right), bool(left == right)
            return {"<": is_less, "<=": is_less or is_equal, ">": not is_less and not is_equal}.get(
                operator, not is_less
            )
        case _:
            raise JsonPathError(f"unrecognized filter operator {operator}")


def _family(value: object) -> type | None:
    return type(value) if isinstance(value, str | bool | int | float) else None


AGE_COLUMN: Document = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

_encode = msgspec.json.Encoder(order="sorted").encode


def custom_columns(columns: Sequence[Document]) -> KindTable:
    """The table of a custom kind."""
    shown: list[Document] = [NAME]
    readers: list[tuple[str, JsonPath]] = []
    for declared in columns or (AGE_COLUMN,):
        try:
            path = JsonPath(declared["jsonPath"])
        except JsonPathError:
            break  # kube-apiserver prints the columns up to the first one that it cannot read
        about = declared.get("description") or f"Found at {declared['jsonPath']}."
        heading = column(declared["name"], about, type_name=declared["type"], form=declared.get("format", ""))
        shown.append({**heading, "priority": declared.get("priority", 0)})
        readers.append((declared["type"], path))

    def cells(obj: Document, now_s: float) -> list[Cell]:
        return [obj["metadata"]["name"], *(_cell(type_name, path, obj, now_s) for type_name, path in readers)]

    return KindTable(shown, cells)


def _cell(type_name: str, path: JsonPath, obj: Document, now_s: float) -> Cell:
    try:
        found = path.find(obj)
    except JsonPathError:
        return None
    return _typed(type_name, found[0], now_s) if found else None


def _typed(type_name: str, value: Any, now_s: float) -> Cell:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match type_name:
        case "string":
            return _text(value)
        case "integer" if is_number:
            return int(value) if _INT64_MIN <= value <= _INT64_MAX else _INT64_MIN
        case "number" if is_number:
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "date" if isinstance(value, str):
            try:
                return since(value, now_s)
            except TimestampError:
                return "<invalid>"
        case _:
            return None


def _text(value: Any) -> str:
    """As Go prints a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return _float_text(value)
    return "<no value>" if value is None else str(_encode(value), "utf-8")


def _float_text(value: float) -> str:
    """The shortest text of a number, with an exponent from a million on."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), f"{value} is no JSON number"
    power = len(digits) - 1 + exponent
    if -4 <= power < 6:
        return repr(value).removesuffix(".0")
    text = "".join(map(str, digits))
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
