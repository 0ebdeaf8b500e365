"""Pods tolerate a silent node for five minutes, unless they say otherwise."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from tests.apiserver.admission.builders import admitted, attempt, pod

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def usual(key: str) -> Document:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="none"),
        pytest.param([{"key": NOT_READY, "operator": "Exists"}], [UNREACHABLE], id="one of its own, for any effect"),
        pytest.param([{"key": NOT_READY, "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE], id="another effect"),
        pytest.param([{"key": NOT_READY, "value": "x"}], [UNREACHABLE], id="values are not looked at"),
        pytest.param([{"operator": "Exists"}], [], id="everything"),
        pytest.param([{"operator": "Exists", "effect": "NoExecute"}], [], id="every eviction"),
    ],
)
def test_tolerations(given: list[Document], added: list[str]) -> None:
    made = attempt(POD, pod(tolerations=list(given)))
    assert admitted(DefaultTolerationSeconds(), made)["spec"]["tolerations"] == [*given, *map(usual, added)]


def test_an_update_does_not_change_the_pod_before_it() -> None:
    old = pod()
    new = {**old, "metadata": dict(old["metadata"])}
    assert len(admitted(DefaultTolerationSeconds(), attempt(POD, new, old))["spec"]["tolerations"]) == 2
    assert "tolerations" not in old["spec"]
