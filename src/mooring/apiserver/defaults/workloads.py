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
from mooring.api.field_errors import quoted
from mooring.apiserver.defaults.pod import default_pod_template
from mooring.apiserver.kinds.persistent_volume_claim import default_claim
from mooring.client.errors import BadRequestError

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
ROLLBACK_REVISION = "deprecated.deployment.rollback.revision"
HISTORY_MAX = 10
PROGRESS_DEADLINE_S = 600
BACKOFF_MAX = 6
INT32_MAX = 2**31 - 1
SUCCEEDED_JOBS_KEPT = 3
FAILED_JOBS_KEPT = 1


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
    if revision and (fault := _int64_fault(revision)):
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
    if fault := _int64_fault(annotations.setdefault(TEMPLATE_GENERATION, "0")):
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


def default_job(obj: Document) -> None:
    spec, metadata = obj["spec"], obj["metadata"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    if "backoffLimit" not in spec:
        spec["backoffLimit"] = INT32_MAX if "backoffLimitPerIndex" in spec else BACKOFF_MAX
    labels = (spec["template"].get("metadata") or {}).get("labels")
    if labels and not metadata.get("labels"):
        metadata["labels"] = labels
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    _default_job_template(spec)


def default_cron_job(obj: Document) -> None:
    spec = obj["spec"]
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", SUCCEEDED_JOBS_KEPT)
    spec.setdefault("failedJobsHistoryLimit", FAILED_JOBS_KEPT)
    _default_job_template(spec["jobTemplate"]["spec"])


def _int64_fault(text: str) -> str:
    """What Go says of a text that is not a number of 64 bits; empty if it is."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        return f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax"
    if not -(2**63) <= int(text) < 2**63:
        return f"strconv.ParseInt: parsing {quoted(text)}: value out of range"
    return ""


def _default_job_template(spec: Document) -> None:
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    default_pod_template(spec["template"])
