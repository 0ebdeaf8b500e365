"""A disruption budget says yes or no."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.registry.eviction import spent
from mooring.client.errors import ForbiddenError, TooManyRequestsError

NOW = "2026-01-02T03:04:05Z"
BEFORE = "2026-01-01T00:00:00Z"


def budget(**status: Any) -> Document:
    return {"metadata": {"name": "b", "generation": 2}, "status": {"observedGeneration": 2, **status}}


def allowed(status: str, reason: str = "", message: str = "") -> Document:
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": BEFORE,
    }


def test_one_less_and_the_pod_is_on_its_way_out() -> None:
    status = spent(budget(disruptionsAllowed=2, disruptedPods={"a": BEFORE}), "p", NOW)
    assert status == {"observedGeneration": 2, "disruptionsAllowed": 1, "disruptedPods": {"a": BEFORE, "p": NOW}}


@pytest.mark.parametrize(
    ("conditions", "since"),
    [
        pytest.param([], NOW, id="it is told for the first time"),
        pytest.param([allowed("True", "SufficientPods")], NOW, id="it has changed"),
        pytest.param([allowed("False", "SyncFailed", "m")], BEFORE, id="it was so before"),
    ],
)
def test_the_last_one_is_told_in_a_condition(conditions: list[Document], since: str) -> None:
    other = {"type": "Other", "status": "True"}
    status = spent(budget(disruptionsAllowed=1, conditions=[*conditions, other]), "p", NOW)
    told = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": 2,
        "lastTransitionTime": since,
        "reason": "InsufficientPods",
        "message": "",
    }
    assert status["conditions"] == ([told, other] if conditions else [other, told])


@pytest.mark.parametrize(
    ("status", "why", "retry_after_s"),
    [
        pytest.param({"observedGeneration": 1}, "is still being processed by the server.", 10, id="not yet looked at"),
        pytest.param(
            {"currentHealthy": 1, "desiredHealthy": 2},
            "needs 2 healthy pods and has 1 currently",
            None,
            id="too few are left",
        ),
        pytest.param(
            {"conditions": [allowed("False", "SyncFailed", "boom")]},
            "does not allow evicting pods currently because it failed sync: boom",
            None,
            id="nobody could count",
        ),
        pytest.param(
            {"currentHealthy": 3, "conditions": [allowed("False", "R", "m")]},
            "does not allow evicting pods currently (R): m",
            None,
            id="another reason",
        ),
        pytest.param({"currentHealthy": 3}, "does not allow evicting pods currently", None, id="no reason"),
    ],
)
def test_not_now(status: Document, why: str, retry_after_s: int | None) -> None:
    with pytest.raises(TooManyRequestsError) as caught:
        spent(budget(**status), "p", NOW)
    error = caught.value
    assert error.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert [(cause.reason, cause.message) for cause in error.causes] == [
        ("DisruptionBudget", f"The disruption budget b {why}")
    ]
    assert error.retry_after_s == retry_after_s


@pytest.mark.parametrize(
    ("status", "why"),
    [
        pytest.param({"disruptionsAllowed": -1}, "pdb disruptions allowed is negative", id="less than nothing"),
        pytest.param(
            {"disruptionsAllowed": 1, "disruptedPods": dict.fromkeys(map(str, range(2_001)), BEFORE)},
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            id="nobody takes pods out of the list",
        ),
    ],
)
def test_not_at_all(status: Document, why: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        spent(budget(**status), "p", NOW)
    assert caught.value.message == f'poddisruptionbudget.policy "b" is forbidden: {why}'
    assert caught.value.details == {"name": "b", "group": "policy", "kind": "poddisruptionbudget"}
