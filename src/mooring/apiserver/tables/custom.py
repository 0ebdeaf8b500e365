"""Tables of custom kinds, from `additionalPrinterColumns` of a version.

1. A kind without columns has the column `Age`.
2. A value that is absent, or not of the type of its column, is an empty cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.apiserver.tables.cells import since
from mooring.apiserver.tables.columns import NAME, Cell, KindTable, column
from mooring.apiserver.tables.json_path import JsonPath, JsonPathError
from mooring.kit.clock import TimestampError

AGE_COLUMN: Document = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1

_encode = msgspec.json.Encoder(order="sorted").encode


def custom_columns(columns: Sequence[Document]) -> KindTable:
    """The table of a custom kind."""
    shown: list[Document] = [NAME]
    readers: list[tuple[str, JsonPath]] = []
    for each in columns or (AGE_COLUMN,):
        try:
            path = JsonPath(each["jsonPath"])
        except JsonPathError:
            break  # kube-apiserver prints the columns up to the first one that it cannot read
        about = each.get("description") or f"Found at {each['jsonPath']}."
        heading = column(each["name"], about, type_name=each["type"], form=each.get("format", ""))
        shown.append({**heading, "priority": each.get("priority", 0)})
        readers.append((each["type"], path))

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
