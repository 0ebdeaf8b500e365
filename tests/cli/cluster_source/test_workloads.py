"""Workloads, expanded into the pods that their controllers would create: only those that are missing."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from mooring.api.decode import decode
from mooring.api.views.meta import ApiObject
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import ReplicaSet
from mooring.cli.cluster_source import workloads
from mooring.cli.cluster_source.cluster_input import ClusterInput, complete
from mooring.cli.errors import InputError
from mooring.cli.manifests.kinds import WORKLOADS
from mooring.cli.manifests.read import ManifestObject
from mooring.kit.entropy import Entropy
from tests.builders import node

NOW_S = 1_767_225_600.0
CONTAINER = {"name": "c", "image": "a", "resources": {"requests": {"cpu": "1"}}}
SELECTOR = {"matchLabels": {"app": "w"}}
VERSIONS = {view.kind: view.api_version for view in WORKLOADS}


class Here:
    def at(self, path: str = "") -> str:
        return f"here:{path}"


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [CONTAINER], **spec}}


def workload(
    kind: str,
    *,
    uid: str = "",
    owners: list[dict[str, Any]] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> ApiObject:
    metadata = {"name": "w", "namespace": "default", "uid": uid or None, "ownerReferences": owners}
    selector = {"ReplicationController": {"app": "w"}, "Job": None}.get(kind, SELECTOR)
    body = {"selector": selector, "template": template(), **spec}
    document = {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": body, "status": status}
    return decode(msgspec.json.encode(without_nulls(document)))


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(entry) for key, entry in value.items() if entry is not None}
    return value


def owner(kind: str, uid: str) -> list[dict[str, Any]]:
    return [{"apiVersion": VERSIONS[kind], "kind": kind, "name": "w", "uid": uid, "controller": True}]


def pod(name: str, owners: list[dict[str, Any]], *, ready: bool = True, **status: Any) -> ApiObject:
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "w"}, "ownerReferences": owners}
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    spec = {"nodeName": "n0", "containers": [CONTAINER]}
    document = {"metadata": metadata, "spec": spec, "status": {"conditions": conditions, **status}}
    return decode(msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", **document}))


def completed(*views: ApiObject, live: list[ApiObject] | None = None, supplied: str = "") -> ClusterInput:
    files = [ManifestObject(view, Here()) for view in views]
    nodes: list[ApiObject] = [node(f"n{number}", labels={"disk": "ssd"} if number else {}) for number in range(3)]
    return complete(files, [*nodes, *(live or [])], supplied.split(), Entropy(1), NOW_S)


def names(cluster: ClusterInput) -> list[str]:
    """Names of pending pods, with `*` for what was drawn."""
    return [re.sub(r"-[a-z0-9]{5}$", "-*", view.metadata.name) for view in cluster.pending]


REPLICAS = [pod(f"w-{n}", owner("ReplicaSet", "r")) for n in range(2)]
MEMBERS = [pod(f"w-{n}", owner("StatefulSet", "s")) for n in range(2)]
DAEMON = pod("w-a", owner("DaemonSet", "a"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([workload("ReplicaSet", replicas=2)], ["w-*", "w-*"], id="ReplicaSet"),
        pytest.param([workload("ReplicaSet")], ["w-*"], id="ReplicaSet without a number"),
        pytest.param([workload("ReplicaSet", replicas=0)], [], id="ReplicaSet of none"),
        pytest.param([workload("ReplicationController", replicas=2)], ["w-*", "w-*"], id="ReplicationController"),
        pytest.param([workload("ReplicaSet", replicas=3, uid="r"), *REPLICAS], ["w-*"], id="some are there"),
        pytest.param([workload("ReplicaSet", replicas=2, uid="r"), *REPLICAS], [], id="all are there"),
        pytest.param(
            [workload("ReplicaSet", replicas=2, uid="r"), *REPLICAS[:1], pod("w-9", owner("ReplicaSet", "x"))],
            ["w-*"],
            id="pods of others do not count",
        ),
        pytest.param(
            [workload("ReplicaSet", replicas=1, uid="r"), pod("w-9", owner("ReplicaSet", "r"), phase="Failed")],
            ["w-*"],
            id="finished pods do not count",
        ),
        pytest.param([workload("ReplicaSet", replicas=2), pod("w-9", [])], ["w-*"], id="an orphan would be adopted"),
        pytest.param(
            [workload("ReplicaSet", replicas=3, uid="r", status={"replicas": 2})],
            ["w-*"],
            id="pods that the input does not hold",
        ),
        pytest.param([workload("StatefulSet", replicas=2)], ["w-0", "w-1"], id="StatefulSet"),
        pytest.param([workload("StatefulSet", replicas=2, ordinals={"start": 5})], ["w-5", "w-6"], id="ordinals"),
        pytest.param([workload("StatefulSet", replicas=3, uid="s"), *MEMBERS], ["w-2"], id="members are there"),
        pytest.param([workload("StatefulSet", replicas=2, uid="s"), MEMBERS[1]], ["w-0"], id="a member between"),
        pytest.param(
            [workload("StatefulSet", replicas=3, uid="s"), pod("w-0", owner("StatefulSet", "s"), ready=False)],
            [],
            id="a member that is not ready: the cluster's controller waits",
        ),
        pytest.param([workload("DaemonSet")], ["w-*", "w-*", "w-*"], id="DaemonSet"),
        pytest.param([workload("DaemonSet", uid="a"), DAEMON], ["w-*", "w-*"], id="a daemon is there"),
        pytest.param(
            [workload("DaemonSet", template=template(nodeSelector={"disk": "ssd"}))],
            ["w-*", "w-*"],
            id="daemons of some nodes",
        ),
        pytest.param([workload("Job")], ["w-*"], id="Job"),
        pytest.param([workload("Job", completions=3, parallelism=2)], ["w-*", "w-*"], id="at once"),
        pytest.param(
            [workload("Job", uid="j", completions=3, parallelism=5, status={"succeeded": 2})], ["w-*"], id="the rest"
        ),
        pytest.param(
            [workload("Job", completions=2, parallelism=2, completionMode="Indexed")], ["w-0-*", "w-1-*"], id="indexed"
        ),
        pytest.param([workload("Job", suspend=True)], [], id="suspended"),
        pytest.param(
            [workload("Job", uid="j", status={"conditions": [{"type": "Complete", "status": "True"}]})],
            [],
            id="finished",
        ),
        pytest.param(
            [workload("CronJob", schedule="0 3 * * *", jobTemplate={"spec": {"template": template()}})],
            ["w-29453940-*"],
            id="CronJob",
        ),
        pytest.param(
            [workload("CronJob", uid="c", schedule="0 3 * * *", jobTemplate={"spec": {"template": template()}})],
            [],
            id="CronJob of a cluster",
        ),
    ],
)
def test_missing_pods(given: list[ApiObject], expected: list[str]) -> None:
    assert names(completed(*given)) == expected


# Deployments


def replica_set(uid: str, app: str = "w") -> ApiObject:
    """A ReplicaSet of two pods; of the Deployment's template, if `app` is that of the template."""
    made = template()
    made["metadata"]["labels"] = {"app": app, "pod-template-hash": uid}
    return workload("ReplicaSet", uid=uid, replicas=2, template=made, owners=owner("Deployment", "d"))


def deployment(replicas: int, *, uid: str = "d", **spec: Any) -> ApiObject:
    strategy = spec.pop("strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    return workload("Deployment", uid=uid, replicas=replicas, strategy=strategy, **spec)


NEW, OLD = replica_set("r"), replica_set("old", "v1")
OLD_PODS = [pod(f"w-old-{n}", owner("ReplicaSet", "old")) for n in range(2)]


@pytest.mark.parametrize(
    ("given", "count"),
    [
        pytest.param([deployment(3, uid="")], 3, id="new"),
        pytest.param([deployment(3, uid="", paused=True)], 0, id="new and paused"),
        pytest.param([deployment(2), NEW, *REPLICAS], 0, id="all are there: its ReplicaSet is not expanded again"),
        pytest.param([deployment(2), NEW, REPLICAS[0]], 1, id="one is missing"),
        pytest.param([deployment(5), NEW, *REPLICAS], 3, id="scaled"),
        pytest.param([deployment(2), OLD, *OLD_PODS], 1, id="a rollout begins with the surge"),
        pytest.param([deployment(2, paused=True), OLD, *OLD_PODS], 0, id="a rollout that is paused"),
        pytest.param([deployment(5, status={"replicas": 2})], 0, id="its ReplicaSets are not in the input"),
        pytest.param([deployment(2, strategy={"type": "Recreate"}), OLD, *OLD_PODS], 0, id="Recreate waits"),
        pytest.param([deployment(2, strategy={"type": "Recreate"}), OLD], 2, id="Recreate without old pods"),
    ],
)
def test_a_deployment(given: list[ApiObject], count: int) -> None:
    assert len(completed(*given).pending) == count


def test_pods_of_a_deployment_are_those_of_a_replica_set_that_is_added() -> None:
    cluster = completed(deployment(2, uid=""))
    (made,) = [view for view in cluster.objects if isinstance(view, ReplicaSet)]
    first, second = cluster.pending
    assert first.metadata.name.startswith(f"{made.metadata.name}-")
    assert first.metadata.name != second.metadata.name
    assert [owner_reference.name for owner_reference in first.metadata.owner_references] == [made.metadata.name]
    assert [view.metadata.name for view in completed(deployment(2, uid="")).pending] == [
        first.metadata.name,
        second.metadata.name,
    ]


def test_a_workload_over_that_of_a_live_cluster_owns_its_pods() -> None:
    live = [workload("ReplicaSet", uid="r", replicas=2, status={"replicas": 2}), *REPLICAS]
    cluster = completed(workload("ReplicaSet", replicas=5), live=live)
    assert len(cluster.pending) == 3
    assert cluster.of_files == {view.key for view in cluster.pending}


def test_workloads_of_a_live_cluster_are_not_expanded() -> None:
    cluster = completed(live=[workload("ReplicaSet", uid="r", replicas=2)])
    assert (cluster.pending, cluster.notes) == ([], [])


# What pods get


def test_claims_of_a_stateful_set_are_used_or_made() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
    known = decode(
        b'{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data-w-0","namespace":"default","uid":"k"}}'
    )
    cluster = completed(workload("StatefulSet", replicas=2, volumeClaimTemplates=claims), known)
    found = [view for view in cluster.objects if isinstance(view, PersistentVolumeClaim)]
    assert sorted((view.key, view.metadata.uid) for view in found) == [
        ("default/data-w-0", "k"),
        ("default/data-w-1", ""),
    ]
    sources = [view.spec.volumes[0].persistent_volume_claim for view in cluster.pending]
    assert [source.claim_name for source in sources if source is not None] == ["data-w-0", "data-w-1"]


def test_claims_of_a_dump_without_claims_are_not_made_up() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    given = workload("StatefulSet", uid="s", replicas=1, volumeClaimTemplates=claims)
    for supplied, count in (("", 0), ("PersistentVolumeClaim", 1)):
        cluster = completed(given, supplied=supplied)
        assert sum(isinstance(view, PersistentVolumeClaim) for view in cluster.objects) == count


def test_daemons_are_bound_to_their_nodes_and_tolerate_what_happens_to_nodes() -> None:
    first = completed(workload("DaemonSet")).pending[0]
    assert first.spec.affinity is not None
    assert first.spec.affinity.node_affinity is not None
    required = first.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    assert required.node_selector_terms[0].match_fields[0].values == ("n0",)
    assert "node.kubernetes.io/unschedulable" in {toleration.key for toleration in first.spec.tolerations}


def test_an_ephemeral_volume_gets_its_claim() -> None:
    claim = {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}}
    cluster = completed(workload("ReplicaSet", template=template(volumes=[{"name": "v", "ephemeral": claim}])))
    (made,) = [view for view in cluster.objects if isinstance(view, PersistentVolumeClaim)]
    assert made.metadata.name == f"{cluster.pending[0].metadata.name}-v"
    assert made.spec.storage_class_name == "s"


# Limits, notes and errors


def test_the_number_of_pods_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "PODS_MAX", 3)
    cluster = completed(workload("ReplicaSet", replicas=2), workload("Job", completions=5, parallelism=5))
    assert len(cluster.pending) == 3
    assert cluster.notes == [
        "added 3 pods that controllers would create: Job 1, ReplicaSet 1",
        "left out 4 pods of workloads: at most 3 are added",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            workload("Deployment", template={"spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}}),
            'here:spec.template.spec.containers[0].resources.requests.cpu: Deployment "default/w"',
            id="a bad quantity",
        ),
        pytest.param(
            workload("Job", template={"spec": {"containers": 5}}),
            'here:spec.template.spec.containers: Job "default/w": spec.template.spec.containers: expected a list',
            id="a bad type",
        ),
        pytest.param(
            workload(
                "CronJob", schedule="0 3 * * *", jobTemplate={"spec": {"template": {"metadata": "x", "spec": {}}}}
            ),
            'here:spec.jobTemplate.spec.template.metadata: CronJob "default/w": '
            'spec.jobTemplate.spec.template.metadata: expected an object, found "x"',
            id="metadata of a bad type",
        ),
        pytest.param(
            workload("ReplicaSet", template={"spec": {"containers": [{"env": 5}]}}),
            'here:: ReplicaSet "default/w": ReplicaSet in version "v1" cannot be handled as a ReplicaSet',
            id="a bad type where scheduling does not look",
        ),
        pytest.param(
            workload("CronJob", schedule="daily", jobTemplate={"spec": {"template": template()}}),
            'here:spec.schedule: CronJob "default/w"',
            id="a bad schedule",
        ),
    ],
)
def test_a_workload_of_which_no_pod_can_be_made(given: ApiObject, said: str) -> None:
    with pytest.raises(InputError) as caught:
        completed(given)
    assert caught.value.lines()[0].startswith(said)


def test_workloads_without_a_template_are_reported() -> None:
    bare = decode(b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w"}}')
    cluster = completed(bare)
    assert cluster.notes == ['Deployment "default/w" has no pod template: no pods of it are added']
    assert cluster.pending == []
