"""DefaultTolerationSeconds adds tolerations of 300 seconds; TaintNodesByCondition taints new nodes as not ready."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from mooring.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from mooring.apiserver.call import Operation
from tests.apiserver.admission.builders import admitted, attempt, named, pod

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def default_toleration(key: str) -> Document:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="no tolerations"),
        pytest.param([{"key": NOT_READY, "operator": "Exists"}], [UNREACHABLE], id="a toleration for all effects"),
        pytest.param([{"key": NOT_READY, "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE], id="another effect"),
        pytest.param([{"key": NOT_READY, "value": "x"}], [UNREACHABLE], id="values are ignored"),
        pytest.param([{"operator": "Exists"}], [], id="tolerates all taints"),
        pytest.param([{"operator": "Exists", "effect": "NoExecute"}], [], id="tolerates NoExecute of all taints"),
    ],
)
def test_default_toleration_seconds_adds_missing_tolerations(given: list[Document], added: list[str]) -> None:
    made = attempt(POD, pod(tolerations=list(given)))
    assert admitted(DefaultTolerationSeconds(), made)["spec"]["tolerations"] == [
        *given,
        *map(default_toleration, added),
    ]


def test_an_update_does_not_change_the_old_pod() -> None:
    old = pod()
    new = {**old, "metadata": dict(old["metadata"])}
    assert len(admitted(DefaultTolerationSeconds(), attempt(POD, new, old))["spec"]["tolerations"]) == 2
    assert "tolerations" not in old["spec"]


NOT_READY_TAINT: Document = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OTHER: Document = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, [NOT_READY_TAINT], id="no taints"),
        pytest.param({"taints": [OTHER]}, [OTHER, NOT_READY_TAINT], id="another effect is another taint"),
        pytest.param(
            {"taints": [{**NOT_READY_TAINT, "value": "x"}]}, [{**NOT_READY_TAINT, "value": "x"}], id="already tainted"
        ),
    ],
)
def test_taint_nodes_by_condition_adds_the_not_ready_taint(given: Document, expected: list[Document]) -> None:
    assert admitted(TaintNodesByCondition(), attempt(NODE, named("n", spec=given)))["spec"]["taints"] == expected


def test_only_new_nodes_are_tainted() -> None:
    assert not TaintNodesByCondition().handles(NODE, "", Operation.UPDATE)
