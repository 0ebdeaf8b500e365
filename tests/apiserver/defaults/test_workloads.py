"""What workloads are if nobody says otherwise."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.cron_job import default_cron_job
from mooring.apiserver.kinds.daemon_set import TEMPLATE_GENERATION, default_daemon_set
from mooring.apiserver.kinds.deployment import default_deployment
from mooring.apiserver.kinds.job.strategy import default_job
from mooring.apiserver.kinds.replica_set import default_replica_set
from mooring.apiserver.kinds.stateful_set import default_stateful_set
from mooring.client.errors import BadRequestError
from tests.apiserver.workload_builders import body, defaulted

DEFAULTS = {
    "Deployment": default_deployment,
    "ReplicaSet": default_replica_set,
    "StatefulSet": default_stateful_set,
    "DaemonSet": default_daemon_set,
    "Job": default_job,
    "CronJob": default_cron_job,
}


@pytest.mark.parametrize("kind", DEFAULTS)
def test_defaulting_twice_changes_nothing(kind: str) -> None:
    once = defaulted(body(kind))
    twice = copy.deepcopy(once)
    DEFAULTS[kind](twice)
    assert twice == once


@pytest.mark.parametrize(
    ("kind", "changes", "field", "value"),
    [
        pytest.param(
            "Deployment", {"spec__strategy": {"type": "Recreate"}}, "strategy", {"type": "Recreate"}, id="Recreate"
        ),
        pytest.param(
            "DaemonSet",
            {},
            "updateStrategy",
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            id="daemons one by one",
        ),
        pytest.param(
            "DaemonSet",
            {"spec__updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}},
            "updateStrategy",
            {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}},
            id="settings that are not used are still numbers",
        ),
        pytest.param(
            "StatefulSet",
            {},
            "updateStrategy",
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            id="stateful, all of them",
        ),
        pytest.param(
            "StatefulSet",
            {"spec__updateStrategy": {"type": "RollingUpdate"}},
            "updateStrategy",
            {"type": "RollingUpdate"},
            id="stateful, if it was said",
        ),
        pytest.param(
            "StatefulSet",
            {},
            "persistentVolumeClaimRetentionPolicy",
            {"whenDeleted": "Retain", "whenScaled": "Retain"},
            id="claims stay",
        ),
        pytest.param("Job", {}, "completions", 1, id="a job ends after one"),
        pytest.param("Job", {"spec__parallelism": 2}, "completions", None, id="a parallel job ends when it likes"),
        pytest.param(
            "Job",
            {"spec__backoffLimitPerIndex": 1},
            "backoffLimit",
            2147483647,
            id="limits for each index replace the common one",
        ),
        pytest.param(
            "Job", {"spec__podFailurePolicy": {"rules": []}}, "podReplacementPolicy", "Failed", id="failures are judged"
        ),
        pytest.param("CronJob", {}, "failedJobsHistoryLimit", 1, id="one failure is remembered"),
    ],
)
def test_fields(kind: str, changes: dict[str, Any], field: str, value: object) -> None:
    assert defaulted(body(kind, **changes))["spec"].get(field) == value


def test_a_job_shares_the_labels_of_its_pods() -> None:
    obj = defaulted(body("Job", spec__template__metadata={"labels": {"a": "b"}}))
    assert obj["metadata"]["labels"] is obj["spec"]["template"]["metadata"]["labels"]


def test_a_job_keeps_its_own_labels() -> None:
    obj = defaulted(body("Job", metadata__labels={"z": "1"}, spec__template__metadata={"labels": {"a": "b"}}))
    assert obj["metadata"]["labels"] == {"z": "1"}


def test_a_pattern_of_conditions_means_true() -> None:
    policy: Document = {"rules": [{"action": "Count", "onPodConditions": [{"type": "Ready"}]}]}
    obj = defaulted(body("CronJob", spec__jobTemplate__spec__podFailurePolicy=policy))
    (rule,) = obj["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rule["onPodConditions"] == [{"type": "Ready", "status": "True"}]


def test_a_claim_template_is_a_claim() -> None:
    obj = defaulted(body("StatefulSet", spec__volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": {}}]))
    (claim,) = obj["spec"]["volumeClaimTemplates"]
    assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
    assert claim["spec"]["volumeMode"] == "Filesystem"
    assert claim["status"] == {"phase": "Pending"}


@pytest.mark.parametrize(
    ("kind", "key", "message"),
    [
        pytest.param(
            "DaemonSet",
            TEMPLATE_GENERATION,
            'DaemonSet in version "v1" cannot be handled as a DaemonSet: strconv.ParseInt: parsing "x": invalid syntax',
            id="the generation of a daemon set",
        ),
        pytest.param(
            "Deployment",
            "deprecated.deployment.rollback.revision",
            'Deployment in version "v1" cannot be handled as a Deployment: '
            "failed to parse annotation[deprecated.deployment.rollback.revision]=x as int64: "
            'strconv.ParseInt: parsing "x": invalid syntax',
            id="the way back of a deployment",
        ),
    ],
)
def test_annotations_that_are_numbers(kind: str, key: str, message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        defaulted(body(kind, metadata__annotations={key: "x"}))
    assert caught.value.message == message
