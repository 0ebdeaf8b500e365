"""When a pod must leave a tainted node."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import Toleration
from mooring.controllers.node.taint_eviction_plan import (
    Cancel,
    Decision,
    Evict,
    Leave,
    decide,
    no_execute_taints,
    stay_s_max,
)
from tests.api.builders import node, taint

NOW_S = 100.0


def tolerates(key: str, seconds: int | None = None, *, operator: str = "Exists", value: str = "") -> Toleration:
    return Toleration(key=key, operator=operator, value=value, effect="NoExecute", toleration_seconds=seconds)


@pytest.mark.parametrize(
    ("taints", "tolerations", "stay_s"),
    [
        pytest.param("a", [], -1.0, id="without tolerations: not a moment"),
        pytest.param("a", [tolerates("b")], -1.0, id="another key"),
        pytest.param("a", [tolerates("a")], None, id="for ever"),
        pytest.param("a", [tolerates("a", 5)], 5.0, id="for a while"),
        pytest.param("a", [tolerates("a", 0)], 0.0, id="for no time"),
        pytest.param("a", [tolerates("a", -3)], 0.0, id="for less than no time"),
        pytest.param("a b", [tolerates("a", 5), tolerates("b", 3)], 3.0, id="the shortest counts"),
        pytest.param("a b", [tolerates("a", 5), tolerates("b")], 5.0, id="for ever is longer than any time"),
        pytest.param("a b", [tolerates("a")], -1.0, id="one that is not tolerated is enough"),
        pytest.param("a", [tolerates("a", 5), tolerates("a", 1)], 5.0, id="only the first that fits is used"),
        pytest.param("a", [tolerates("c", 1), tolerates("a", 5)], 5.0, id="tolerations that are not used do not count"),
        pytest.param("a", [Toleration(operator="Exists")], None, id="one for everything"),
        pytest.param("a=x", [tolerates("a", operator="Equal", value="y")], -1.0, id="another value"),
    ],
)
def test_how_long_a_pod_may_stay(taints: str, tolerations: list[Toleration], stay_s: float | None) -> None:
    assert stay_s_max([taint(f"{text}:NoExecute") for text in taints.split()], tolerations) == stay_s


@pytest.mark.parametrize(
    ("toleration", "scheduled_since_s", "decision"),
    [
        pytest.param(tolerates("b"), None, Evict(NOW_S, NOW_S), id="not tolerated: at once"),
        pytest.param(tolerates("b"), 90.0, Evict(NOW_S, NOW_S), id="not tolerated: at once, whatever was scheduled"),
        pytest.param(tolerates("a"), 90.0, Cancel(), id="tolerated for ever: it may stay"),
        pytest.param(tolerates("a", 7), None, Evict(NOW_S, 107.0), id="tolerated for a while: then"),
        pytest.param(tolerates("a", 7), 99.0, Leave(), id="its time has begun already"),
        pytest.param(tolerates("a", 7), NOW_S, Evict(NOW_S, 107.0), id="scheduled in this very moment: anew"),
    ],
)
def test_what_is_decided(toleration: Toleration, scheduled_since_s: float | None, decision: Decision) -> None:
    assert decide([taint("a:NoExecute")], [toleration], scheduled_since_s, NOW_S) == decision


def test_only_no_execute_taints_count() -> None:
    tainted = node(taints=["a:NoSchedule", "b:NoExecute", "c:PreferNoSchedule"])
    assert [taint.key for taint in no_execute_taints(tainted)] == ["b"]
