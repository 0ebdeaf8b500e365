"""A new node is not ready."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE
from mooring.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from mooring.apiserver.call import Operation
from tests.apiserver.admission.builders import admitted, attempt, named

NOT_READY: Document = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OTHER: Document = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, [NOT_READY], id="one without taints gets one"),
        pytest.param({"taints": [OTHER]}, [OTHER, NOT_READY], id="another effect is another taint"),
        pytest.param({"taints": [{**NOT_READY, "value": "x"}]}, [{**NOT_READY, "value": "x"}], id="not twice"),
    ],
)
def test_taints(given: Document, expected: list[Document]) -> None:
    assert admitted(TaintNodesByCondition(), attempt(NODE, named("n", spec=given)))["spec"]["taints"] == expected


def test_only_new_nodes_are_tainted() -> None:
    assert not TaintNodesByCondition().handles(NODE, "", Operation.UPDATE)
