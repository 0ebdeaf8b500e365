"""A node comes with its status; afterwards each has its own door."""

from __future__ import annotations

from mooring.api.kinds import NODE
from tests.apiserver.core_documents import call, changed, created, document, strategy

CONFIG = {"configMap": {"namespace": "a", "name": "b", "kubeletConfigKey": "c"}}


def test_a_new_node_keeps_its_status_but_for_what_is_gone() -> None:
    node = document(
        NODE, spec={"configSource": CONFIG}, status={"phase": "Running", "config": {"error": "x"}, "images": []}
    )
    assert created(NODE, node) == []
    assert "configSource" not in node["spec"]
    assert node["status"]["phase"] == "Running"
    assert "config" not in node["status"]


def test_each_door_changes_its_part() -> None:
    old = document(NODE, status={"phase": "Running"})
    faults, node = changed(NODE, old, spec={"unschedulable": True, "configSource": CONFIG}, status={})
    assert faults == []
    assert node["spec"] == {"unschedulable": True}
    assert node["status"] == old["status"]
    faults, node = changed(NODE, old, "status", spec={"unschedulable": True}, status={"config": {"error": "x"}})
    assert faults == []
    assert node["spec"] == {}
    assert "config" not in node["status"]
    assert "phase" not in node["status"]


def test_an_update_is_judged_twice() -> None:
    faults, _ = changed(NODE, document(NODE), spec={"taints": [{"key": "a"}]})
    assert faults == ["metadata.taints[0].effect: Required value"] * 2


def test_old_fields_are_told() -> None:
    node = document(NODE, spec={"externalID": "e", "podCIDRs": ["FD00::/64"]})
    assert strategy(NODE).warnings_on_create(node, call(NODE)) == [
        "spec.externalID: this field is deprecated, and is unused by Kubernetes",
        'spec.podCIDRs[0]: IPv6 CIDR value "FD00::/64" should be in RFC 5952 canonical format ("fd00::/64")',
    ]
    kept = {**document(NODE), "spec": {"configSource": CONFIG}}
    assert strategy(NODE).warnings_on_update(kept, kept, call(NODE)) == ["spec.configSource: the feature is removed"]


def test_nodes_are_selected_by_whether_pods_may_come() -> None:
    fields = [strategy(NODE).selectable_fields(document(NODE, spec={"unschedulable": flag})) for flag in (True, False)]
    assert fields == [{"spec.unschedulable": "true"}, {"spec.unschedulable": "false"}]
