"""Whether two documents mean the same."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.semantic_equality import means_the_same


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1024Mi"}}, True, id="other words"),
        pytest.param({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1G"}}, False, id="another amount"),
        pytest.param({"limits": {}}, {}, True, id="empty and absent"),
        pytest.param({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1", "memory": "1"}}, False, id="one more"),
        pytest.param({"claims": [{"name": "a"}]}, {"claims": [{"name": "b"}]}, False, id="another name"),
        pytest.param({"claims": []}, {"claims": None}, True, id="an empty list and none"),
    ],
)
def test_resources(one: Document, other: Document, is_same: bool) -> None:
    assert means_the_same(one, other, "core", "ResourceRequirements") is is_same


def test_an_absent_struct_is_not_an_empty_one() -> None:
    assert not means_the_same({"affinity": {}}, {}, "core", "PodSpec")
