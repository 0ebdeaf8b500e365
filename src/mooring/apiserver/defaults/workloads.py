"""What deployments, replica sets, stateful sets, daemon sets, jobs and cron jobs are if nobody says otherwise.

Comes in   canonical documents
Goes out   the same, filled in place

 1. A percentage, a limit or a policy that was said is never changed.
 2. A daemon set always shows the generation of its template as an annotation, because that is where v1 keeps it. Inside
    kube-apiserver it is a number, and so is an old annotation of deployments: texts that are none are refused here.
 3. A job without labels takes over those of its pods, the very same map: what the strategy adds to the one, the other
    gets too, as in Kubernetes.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.pod import default_pod_template
from mooring.apiserver.kinds.persistent_volume_claim import default_claim
from mooring.apiserver.kinds.workloads import HISTORY_MAX, int64_fault
from mooring.client.errors import BadRequestError

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
ROLLBACK_REVISION = "deprecated.deployment.rollback.revision"
PROGRESS_DEADLINE_S = 600


def default_deployment(obj: Document) -> None:
    spec = obj["spec"]
    check_rollback_revision(obj["metadata"])
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", HISTORY_MAX)
    spec.setdefault("progressDeadlineSeconds", PROGRESS_DEADLINE_S)
    default_pod_template(spec["template"])


def check_rollback_revision(metadata: Document) -> None:
    """An annotation that kube-apiserver makes a number of on the way in."""
    revision = (metadata.get("annotations") or {}).get(ROLLBACK_REVISION)
    if revision and (fault := int64_fault(revision)):
        raise BadRequestError(
            'Deployment in version "v1" cannot be handled as a Deployment: '
            f"failed to parse annotation[{ROLLBACK_REVISION}]={revision} as int64: {fault}"
        )


def default_replica_set(obj: Document) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    default_pod_template(spec["template"])


def default_daemon_set(obj: Document) -> None:
    spec = obj["spec"]
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    elif (rolling := strategy.get("rollingUpdate")) is not None:
        # Inside kube-apiserver these two cannot be absent.
        rolling.setdefault("maxUnavailable", 0)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", HISTORY_MAX)
    annotations = obj["metadata"].setdefault("annotations", {})
    if fault := int64_fault(annotations.setdefault(TEMPLATE_GENERATION, "0")):
        raise BadRequestError(f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {fault}')
    default_pod_template(spec["template"])


def default_stateful_set(obj: Document) -> None:
    spec = obj["spec"]
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if (rolling := strategy.get("rollingUpdate")) is not None:
        rolling.setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for field in ("whenDeleted", "whenScaled"):
        if not retention.get(field):
            retention[field] = "Retain"
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", HISTORY_MAX)
    default_pod_template(spec["template"])
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        default_claim(claim)
