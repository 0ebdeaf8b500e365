"""Whoever asks for devices asks for one."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from tests.apiserver.core_documents import document


@pytest.mark.parametrize(
    ("wish", "mode", "count"),
    [
        pytest.param({}, "ExactCount", 1, id="nothing said"),
        pytest.param({"count": 3}, "ExactCount", 3, id="a number"),
        pytest.param({"allocationMode": "All"}, "All", None, id="all of them"),
    ],
)
def test_one_device_is_meant(wish: dict[str, Any], mode: str, count: int | None) -> None:
    requests = [{"name": "a", "exactly": wish}, {"name": "b", "firstAvailable": [wish]}]
    claim = document(RESOURCE_CLAIM, spec={"devices": {"requests": requests}})
    template = document(RESOURCE_CLAIM_TEMPLATE, spec={"spec": {"devices": {"requests": requests}}})
    for spec in (claim["spec"], template["spec"]["spec"]):
        exact, choice = spec["devices"]["requests"]
        for made in (exact["exactly"], choice["firstAvailable"][0]):
            assert (made["allocationMode"], made.get("count")) == (mode, count)


def test_tolerations_compare() -> None:
    result = {"request": "a", "tolerations": [{"key": "x"}, {"key": "y", "operator": "Exists"}]}
    claim = document(RESOURCE_CLAIM, status={"allocation": {"devices": {"results": [result]}}})
    tolerations = claim["status"]["allocation"]["devices"]["results"][0]["tolerations"]
    assert [toleration["operator"] for toleration in tolerations] == ["Equal", "Exists"]
