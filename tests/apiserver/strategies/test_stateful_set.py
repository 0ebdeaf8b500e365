"""Stateful sets, created and changed."""

from __future__ import annotations

from tests.apiserver.workload_builders import body, changed, created, updated


def test_a_new_one_has_counted_nothing() -> None:
    assert created(body("StatefulSet")).obj["status"] == {"replicas": 0, "availableReplicas": 0}


def test_the_name_is_a_part_of_hostnames() -> None:
    assert created(body("StatefulSet", metadata__name="a.b")).faults == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]


def test_max_unavailable_waits_behind_its_gate() -> None:
    strategy = {"rollingUpdate": {"maxUnavailable": 2}}
    obj = created(body("StatefulSet", spec__updateStrategy=strategy)).obj
    assert obj["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 0}
    old = changed(obj, spec__updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}})
    kept = updated(body("StatefulSet", spec__updateStrategy=strategy), old).obj
    assert kept["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 2, "partition": 0}


def test_odd_settings_are_warned_of() -> None:
    claim = {
        "metadata": {"name": "d"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}},
    }
    raw = body("StatefulSet", spec__revisionHistoryLimit=-1, spec__volumeClaimTemplates=[claim])
    assert created(raw).warnings == [
        "spec.volumeClaimTemplates[0].resources.requests[storage]: "
        'fractional byte value "1500m" is invalid, must be an integer',
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended",
    ]


def test_a_status_adds_up_before_the_metadata_is_looked_at() -> None:
    old = created(body("StatefulSet")).obj
    raw = {**changed(old, status={"replicas": 0, "readyReplicas": 1}), "kind": "StatefulSet", "apiVersion": "apps/v1"}
    assert updated(raw, old, "status").faults == [
        "status.readyReplicas: Invalid value: 1: cannot be greater than status.replicas"
    ]
