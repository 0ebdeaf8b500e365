"""Columns of a kind and the function that turns an object into a row of cells.

1. A row has a cell for each column, including those of lower priority. The client leaves out what it does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.apiserver.tables.cells import age

Cell = object
"""A text, a number, a truth value or None."""
Cells = Callable[[Document, float], list[Cell]]
"""The cells of an object; the second argument is the time, from which ages are counted."""


@dataclass(frozen=True, slots=True, eq=False)
class KindTable:
    """How one kind is printed."""

    columns: Sequence[Document]
    cells: Cells
    conditions: Callable[[Document], list[Document] | None] | None = None
    """What marks a row as a whole, if anything does."""

    @property
    def empty_rows(self) -> list[Document] | None:
        """The rows of an empty table. kube-apiserver returns null for kinds without columns of their own."""
        return None if self is DEFAULT_TABLE else []

    def row(self, obj: Document, now_s: float) -> Document:
        row: Document = {"cells": self.cells(obj, now_s)}
        if self.conditions is not None and (conditions := self.conditions(obj)):
            row["conditions"] = conditions
        return row


def column(name: str, about: str, *, type_name: str = "string", form: str = "", is_wide: bool = False) -> Document:
    """A column. `is_wide` columns are shown by `kubectl get -o wide`."""
    return {
        "name": name,
        "type": type_name,
        "format": form,
        "description": about,
        "priority": 1 if is_wide else 0,
    }


def integer(name: str, about: str) -> Document:
    return column(name, about, type_name="integer")


def boolean(name: str, about: str) -> Document:
    return column(name, about, type_name="boolean")


def wide(name: str, about: str) -> Document:
    return column(name, about, is_wide=True)


NAME = column("Name", "Its name, which nothing else of this kind has in the same place.", form="name")
AGE = column("Age", "How long ago it was made.")
CREATED_AT = column("Created At", "When it was made.", type_name="date")


def _made_at(obj: Document, now_s: float) -> list[Cell]:
    metadata = obj["metadata"]
    return [metadata["name"], metadata.get("creationTimestamp")]


DEFAULT_TABLE = KindTable((NAME, CREATED_AT), _made_at)
"""For kinds without columns of their own."""


def _name_and_age_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], age(obj, now_s)]


NAME_AND_AGE = KindTable((NAME, AGE), _name_and_age_cells)
