"""Conditions of a pod."""

from __future__ import annotations

from mooring.apiserver.strategies.pod_conditions import with_condition


def test_the_time_is_when_the_status_changed() -> None:
    new = with_condition((), {"type": "A", "status": "True"}, "t1")
    assert new == [{"type": "A", "status": "True", "lastProbeTime": None, "lastTransitionTime": "t1"}]
    same = with_condition(new, {"type": "A", "status": "True", "reason": "r"}, "t2")
    assert (same[0]["lastTransitionTime"], same[0]["reason"]) == ("t1", "r")
    other = with_condition([{"type": "B", "status": "True"}, *same], {"type": "A", "status": "False"}, "t3")
    assert [(each["type"], each.get("lastTransitionTime")) for each in other] == [("B", None), ("A", "t3")]
