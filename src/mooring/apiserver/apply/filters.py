"""Filters: which fields a way of writing ignores, so that nobody becomes their manager by it.

Comes in   field sets, and the paths that a strategy takes back (`Strategy.ignored_fields`)
Goes out   field sets without these paths and what is below
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from mooring.apiserver.apply.field_set import FieldSet, set_of, without_below
from mooring.apiserver.apply.path_elements import FIELD

Ignored: TypeAlias = Sequence[tuple[str, ...]]
"""Paths of plain field names."""


def kept(fields: FieldSet, ignored: Ignored) -> FieldSet:
    """A field set without what is ignored."""
    return without_below(fields, _set_of_names(tuple(ignored))) if fields and ignored else fields


@lru_cache(maxsize=512)
def _set_of_names(ignored: tuple[tuple[str, ...], ...]) -> FieldSet:
    return set_of([[FIELD + name for name in path] for path in ignored])
