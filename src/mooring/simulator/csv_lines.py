"""Lines of a CSV trace, whose errors name file and line.

Columns are found by name; others are allowed. The file is read line by line.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from mooring.simulator.errors import ScenarioError


class CsvLine:
    """One line."""

    def __init__(self, path: Path, number: int, cells: Mapping[str, str]) -> None:
        self._path = path
        self._number = number
        self._cells = cells

    def text(self, column: str) -> str:
        """A text that is there."""
        value = self._cells[column]
        if not value:
            raise self.error(f"{column} is empty")
        return value

    def optional(self, column: str) -> str:
        """A text that may be empty, in a column that may be missing."""
        return self._cells.get(column) or ""

    def number(self, column: str, *, least: float = 0.0) -> float:
        text = self._cells[column]
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.error(f"{column} is {text!r}; wanted a number")
        if number < least:
            raise self.error(f"{column} is {text}; wanted {least:g} or more")
        return number

    def integer(self, column: str, *, least: int = 0) -> int:
        return int(self.number(column, least=least))

    def optional_number(self, column: str) -> float | None:
        """A number; None for an empty cell or NaN."""
        return None if self._cells[column].lower() in ("", "nan") else self.number(column)

    def error(self, text: str) -> ScenarioError:
        return ScenarioError(f"{self._path}:{self._number}", text)


def csv_lines(path: Path, columns: tuple[str, ...]) -> Iterator[CsvLine]:
    """The lines after the header, which must have these columns. Raises `ScenarioError`."""
    number = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, None)
            if header is None:
                raise ScenarioError(f"{path}:1", f"is empty; wanted the columns {', '.join(columns)}")
            missing = [column for column in columns if column not in header]
            if missing:
                raise ScenarioError(f"{path}:1", f"has no column {', '.join(missing)}; found {', '.join(header)}")
            for cells in reader:
                number = reader.line_num
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise ScenarioError(f"{path}:{number}", f"has {len(cells)} cells; wanted {len(header)}")
                yield CsvLine(path, number, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise ScenarioError(f"{path}:{number + 1}", f"is no line of CSV: {error}") from error
    except (OSError, UnicodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ScenarioError(str(path), f"cannot be read: {what}") from error
