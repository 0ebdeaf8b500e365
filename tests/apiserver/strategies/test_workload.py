"""What all workloads share."""

from __future__ import annotations

import pytest

from mooring.apiserver.strategies.workload import pod_name_warnings


@pytest.mark.parametrize(
    ("name", "count"),
    [pytest.param("web", 0, id="a label"), pytest.param("web.v2", 1, id="dots"), pytest.param("w" * 64, 1, id="long")],
)
def test_names_that_make_bad_hostnames(name: str, count: int) -> None:
    assert len(pod_name_warnings(name)) == count
