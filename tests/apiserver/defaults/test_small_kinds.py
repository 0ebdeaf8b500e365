"""What the small kinds are if nobody says otherwise."""

from __future__ import annotations

from mooring.apiserver.kinds.role import GROUP
from tests.apiserver.workload_builders import body, defaulted


def test_a_priority_class_preempts() -> None:
    assert defaulted(body("PriorityClass"))["preemptionPolicy"] == "PreemptLowerPriority"


def test_a_port_is_nameless_and_tcp() -> None:
    assert defaulted(body("EndpointSlice"))["ports"] == [{"name": "", "protocol": "TCP", "port": 80}]


def test_roles_users_and_groups_belong_to_rbac() -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]
    obj = defaulted(body("RoleBinding", subjects=subjects))
    assert obj["roleRef"]["apiGroup"] == GROUP
    assert [subject.get("apiGroup") for subject in obj["subjects"]] == [GROUP, None]
