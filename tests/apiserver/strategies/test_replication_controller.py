"""What is special about replication controllers."""

from __future__ import annotations

from copy import deepcopy

from mooring.api.document import Document
from mooring.api.kinds import REPLICATION_CONTROLLER
from mooring.apiserver.strategies.replication_controller import ReplicationControllerStrategy
from mooring.apiserver.strategy import Dependents
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import call_for, pod

STRATEGY = ReplicationControllerStrategy(REPLICATION_CONTROLLER)
CALL = call_for(REPLICATION_CONTROLLER)


def made() -> Document:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": pod({"nodeSelector": {"beta.kubernetes.io/os": "x"}})["spec"],
    }
    obj: Document = {"metadata": {"name": "r", "namespace": "n"}, "spec": {"template": template}}
    STRATEGY.default(obj)
    STRATEGY.prepare_for_create(obj, CALL)
    return obj


def test_a_new_one_has_no_pods_yet_and_leaves_them_behind() -> None:
    obj = made()
    assert (obj["status"], obj["metadata"]["generation"], STRATEGY.dependents) == (
        {"replicas": 0},
        1,
        Dependents.ORPHAN,
    )
    assert messages(STRATEGY.validate(obj, CALL)) == []
    assert STRATEGY.selectable_fields(obj) == {"status.replicas": "0"}


def test_warnings_of_a_change_are_about_the_old_template() -> None:
    old = made()
    new = deepcopy(old)
    del new["spec"]["template"]["spec"]["nodeSelector"]
    STRATEGY.prepare_for_update(new, old, CALL)
    assert new["metadata"]["generation"] == 2
    assert STRATEGY.warnings_on_update(new, old, CALL) == STRATEGY.warnings_on_create(old, CALL) != []


def test_a_status_has_figures_that_add_up() -> None:
    old = made()
    old["metadata"].update(resourceVersion="1", uid="u")
    new = deepcopy(old)
    new["status"] = {"replicas": 1, "readyReplicas": 2}
    status = STRATEGY.subresources["status"]
    assert messages(status.validate_update(new, old, CALL)) == [
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"
    ]
