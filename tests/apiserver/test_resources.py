"""Finding resources by their kind."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD, Kind
from mooring.apiserver.resources import ResourceTable, built_in_resources
from mooring.client.errors import NotFoundError


def test_a_kind_is_found_by_its_row_or_by_a_namesake_of_it() -> None:
    table = ResourceTable(built_in_resources())
    assert table.of_kind(POD).kind is POD
    assert table.of_kind(Kind("v1", "Pod", "pods")).kind is POD


def test_a_kind_that_is_not_served_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        ResourceTable().of_kind(Kind("example.com/v1", "Widget", "widgets"))
