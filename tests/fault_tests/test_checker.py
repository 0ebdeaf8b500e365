"""The invariant checker reports each violation, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mooring.api.kinds import DAEMON_SET, DEPLOYMENT, JOB, NODE, POD, REPLICA_SET, STATEFUL_SET, Kind
from tests.fault_tests.checker import InvariantChecker

Write = tuple[Kind, str, dict[str, Any] | None]


def node(cpu: str = "2") -> Write:
    return NODE, "n1", {"metadata": {"name": "n1", "uid": "n1"}, "status": {"allocatable": {"cpu": cpu}}}


def pod(
    name: str,
    *,
    on: str = "",
    phase: str = "Running",
    owner: str = "",
    is_terminating: bool = False,
    is_ready: bool = False,
    pinned_to: str = "",
) -> Write:
    metadata: dict[str, Any] = {"name": name, "uid": name}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "kind": "ReplicaSet", "controller": True}]
    if is_terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    containers = [{"image": "app:1", "resources": {"requests": {"cpu": "1000m"}}}]
    spec: dict[str, Any] = {"containers": containers, **({"nodeName": on} if on else {})}
    if pinned_to:
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pinned_to]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}] if is_ready else []}
    return POD, name, {"metadata": metadata, "spec": spec, "status": status}


def deployment(replicas: int, *, surge: int = 0, generation: int = 1, observed: int = 0) -> Write:
    metadata = {"name": "web", "uid": "web", "generation": generation}
    spec = {"replicas": replicas, "strategy": {"rollingUpdate": {"maxSurge": surge}}}
    status = {"observedGeneration": observed}
    return DEPLOYMENT, "web", {"kind": "Deployment", "metadata": metadata, "spec": spec, "status": status}


def replica_set(name: str, replicas: int) -> Write:
    owner = {"uid": "web", "kind": "Deployment", "controller": True}
    metadata = {"name": name, "uid": name, "generation": 1, "ownerReferences": [owner]}
    return REPLICA_SET, name, {"kind": "ReplicaSet", "metadata": metadata, "spec": {"replicas": replicas}}


def stateful_set(replicas: int, *, policy: str = "OrderedReady") -> Write:
    spec = {"replicas": replicas, "podManagementPolicy": policy}
    return STATEFUL_SET, "db", {"kind": "StatefulSet", "metadata": {"name": "db", "uid": "db"}, "spec": spec}


def daemon_set() -> Write:
    return DAEMON_SET, "log", {"kind": "DaemonSet", "metadata": {"name": "log", "uid": "log"}, "spec": {}}


def job(completions: int, parallelism: int, *, succeeded: int = 0, failed: int = 0) -> Write:
    spec = {"completions": completions, "parallelism": parallelism}
    status = {"succeeded": succeeded, "failed": failed}
    return JOB, "work", {"kind": "Job", "metadata": {"name": "work", "uid": "work"}, "spec": spec, "status": status}


def gone(kind: Kind, name: str) -> Write:
    return kind, name, None


@pytest.mark.parametrize(
    ("writes", "lost_answers", "violations"),
    [
        pytest.param([node(), pod("a"), pod("a", on="n1")], 0, "", id="a pod is bound"),
        pytest.param([pod("a", on="n1"), pod("a", on="n2")], 0, "was on n1 and is on 'n2'", id="a pod is moved"),
        pytest.param([pod("a", on="n1"), pod("a")], 0, "was on n1 and is on ''", id="a pod loses its node"),
        pytest.param(
            [pod("a", on="n1"), gone(POD, "a"), pod("a", on="n2")],
            0,
            "",
            id="another pod of the name on another node",
        ),
        pytest.param(
            [node(), *(pod(name, on="n1") for name in "abc")],
            0,
            "n1 has 2000m and 3000m are requested",
            id="more than the node has",
        ),
        pytest.param(
            [node(), pod("a", on="n1", phase="Failed"), pod("b", on="n1"), pod("c", on="n1")],
            *(0, ""),
            id="a finished pod requests nothing",
        ),
        pytest.param(
            [node(), pod("a", on="n1", is_terminating=True), pod("b", on="n1"), pod("c", on="n1")],
            *(0, "n1 has 2000m and 3000m are requested"),
            id="a terminating pod still requests its cpu",
        ),
        pytest.param(
            [deployment(3, surge=1), replica_set("old", 3), replica_set("new", 1)], 0, "", id="as many as allowed"
        ),
        pytest.param(
            [deployment(3, surge=1), replica_set("old", 3), replica_set("new", 2)],
            *(0, "its Deployment may have 4 pods and requests 5"),
            id="one more than allowed",
        ),
        pytest.param(
            [deployment(5), replica_set("old", 3), deployment(1, generation=2, observed=1), replica_set("old", 5)],
            *(0, ""),
            id="the controller may not have observed the newest generation",
        ),
        pytest.param(
            [deployment(5), replica_set("old", 3), deployment(1, generation=2, observed=2), replica_set("old", 5)],
            *(0, "its Deployment may have 1 pods and requests 5"),
            id="the controller has observed it",
        ),
        pytest.param(
            [deployment(5), replica_set("old", 5), deployment(1, generation=2, observed=2), replica_set("old", 4)],
            *(0, ""),
            id="scaling down is always allowed",
        ),
        pytest.param(
            [replica_set("old", 1), pod("a", owner="old"), pod("b", owner="old")],
            *(0, "one of 2 pods of a ReplicaSet that may have 1"),
            id="a pod too many",
        ),
        pytest.param(
            [replica_set("old", 1), pod("a", owner="old"), pod("b", owner="old")],
            1,
            "",
            id="whose response was lost",
        ),
        pytest.param(
            [replica_set("old", 1), pod("a", owner="old", is_terminating=True), pod("b", owner="old")],
            *(0, ""),
            id="replacing a terminating pod",
        ),
        pytest.param(
            [stateful_set(2), pod("db-0", owner="db", is_ready=True), pod("db-1", owner="db")], 0, "", id="in order"
        ),
        pytest.param(
            [stateful_set(2), pod("db-0", owner="db"), pod("db-1", owner="db")],
            *(0, "db-1 is created before db-0 was ready"),
            id="out of order",
        ),
        pytest.param(
            [stateful_set(2, policy="Parallel"), pod("db-1", owner="db"), pod("db-0", owner="db")],
            *(0, ""),
            id="where order does not matter",
        ),
        pytest.param(
            [stateful_set(1), pod("db-0", owner="db", is_ready=True), pod("db-1", owner="db")],
            *(0, "db-1 is created for a StatefulSet of 1"),
            id="an ordinal too many",
        ),
        pytest.param(
            [daemon_set(), pod("a", owner="log", pinned_to="n1"), pod("b", owner="log", pinned_to="n2")],
            *(0, ""),
            id="one for each node",
        ),
        pytest.param(
            [daemon_set(), pod("a", owner="log", pinned_to="n1"), pod("b", owner="log", pinned_to="n1")],
            *(0, "b is one of 2 pods of a DaemonSet that may have 1"),
            id="two for a node",
        ),
        pytest.param(
            [job(3, 1), pod("a", owner="work"), pod("b", owner="work")],
            *(0, "b is one of 2 pods of a Job that may have 1"),
            id="more than may run at a time",
        ),
        pytest.param(
            [job(1, 2), pod("a", owner="work", phase="Succeeded"), pod("b", owner="work")],
            *(0, "b is created when 1 of 1 succeeded, 1 run"),
            id="more than are needed",
        ),
        pytest.param(
            [job(1, 2), pod("a", owner="work", phase="Succeeded", is_terminating=True), pod("b", owner="work")],
            *(0, ""),
            id="a pod that succeeds while it terminates may have been replaced",
        ),
        pytest.param(
            [job(1, 1), pod("a", owner="work"), job(1, 1, succeeded=1)],
            *(0, "work counts 1 successes, 0 pods succeeded"),
            id="a counted success without a pod",
        ),
        pytest.param(
            [job(2, 1), pod("a", owner="work", phase="Succeeded"), job(2, 1, succeeded=1, failed=1)],
            *(0, "work counts 2 ends of 1 pods"),
            id="a pod that is counted twice",
        ),
        pytest.param(
            [job(2, 1), pod("a", owner="work", phase="Succeeded"), job(2, 1, succeeded=1), job(2, 1)],
            *(0, "work decreases its counts"),
            id="a count decreases",
        ),
    ],
)
def test_violations(writes: list[Write], lost_answers: int, violations: str) -> None:
    checker = InvariantChecker(lambda owner: lost_answers)
    for revision, (kind, name, document) in enumerate(writes):
        value = None if document is None else msgspec.json.encode(document)
        checker.observe(kind.key("default", name), revision, value)
    assert len(checker.violations) == bool(violations)
    assert violations in "".join(checker.violations)
