"""The members of a StatefulSet."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.views.pod import Pod
from mooring.controllers.statefulset.members import (
    claim_names,
    has_identity,
    has_storage,
    is_in_range,
    is_made_of_current,
    is_member,
    member_document,
    parent_and_ordinal,
)
from tests.controllers.batch_builders import member, stateful_set_view


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("db-0", ("db", 0)),
        ("my-db-12", ("my-db", 12)),
        ("db-007", ("db", 7)),
        ("db", ("", -1)),
        ("db-x", ("", -1)),
        ("db-99999999999", ("db", -1)),
    ],
)
def test_names(name: str, expected: tuple[str, int]) -> None:
    assert parent_and_ordinal(name) == expected


def test_ordinals_may_start_anywhere() -> None:
    wanted = stateful_set_view(replicas=2, ordinals={"start": 5})
    assert [ordinal for ordinal in range(10) if is_in_range(wanted, ordinal)] == [5, 6]
    assert is_member(wanted, member(1))
    assert not is_member(stateful_set_view(name="web"), member(1))


@pytest.mark.parametrize(
    ("parts", "ordinal", "expected"),
    [
        pytest.param({"partition": 2}, 1, True, id="below the partition"),
        pytest.param({"partition": 2}, 2, False, id="at the partition"),
        pytest.param({"partition": 2, "ordinals": {"start": 5}}, 6, True, id="counted from the first"),
        pytest.param({"updateStrategy": {"type": "OnDelete"}}, 0, False, id="on delete"),
        pytest.param(
            {"updateStrategy": {"type": "RollingUpdate"}, "status": {"currentReplicas": 1}},
            0,
            True,
            id="without a partition",
        ),
    ],
)
def test_the_template_of_a_new_member(parts: dict[str, Any], ordinal: int, expected: bool) -> None:
    assert is_made_of_current(stateful_set_view(**parts), ordinal) == expected


@pytest.mark.parametrize(
    ("pod", "is_right"),
    [
        pytest.param(member(0, claims=["data"]), True, id="as it should be"),
        pytest.param(member(0), False, id="without its claim"),
        pytest.param(
            member(0, claims=["data"], labels={"statefulset.kubernetes.io/pod-name": "x"}), False, id="misnamed"
        ),
    ],
)
def test_identity_and_storage(pod: Pod, is_right: bool) -> None:
    wanted = stateful_set_view(claims=["data"])
    assert (has_identity(wanted, pod) and has_storage(wanted, pod)) == is_right


def test_the_pod_of_an_ordinal() -> None:
    wanted = stateful_set_view(claims=["data", "log"])
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [], "volumes": volumes}}
    pod = member_document(wanted, template, "db-r1", 2)
    assert pod["metadata"]["name"] == pod["spec"]["hostname"] == "db-2"
    assert pod["metadata"]["labels"] == {
        "app": "db",
        "statefulset.kubernetes.io/pod-name": "db-2",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "db-r1",
    }
    assert pod["spec"]["subdomain"] == "db"
    assert claim_names(wanted, 2) == {"data": "data-db-2", "log": "log-db-2"}
    assert pod["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-2"}},
        {"name": "log", "persistentVolumeClaim": {"claimName": "log-db-2"}},
        {"name": "tmp", "emptyDir": {}},
    ]
