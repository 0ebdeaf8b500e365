"""Builders of Jobs, CronJobs, DaemonSets and StatefulSets, as documents and as views.

job_view(completions=3, status={"succeeded": 1})
job_pod("p1", "Succeeded", index=2)
daemon_set_view(update={"maxSurge": 1})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.views.meta import View
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import CronJob, DaemonSet, Job, StatefulSet
from mooring.kit.clock import format_rfc3339
from mooring.kit.entropy import Entropy
from tests.client.faulty import Outcome, Storm
from tests.controllers.builders import NOW_S, template

AnyView = TypeVar("AnyView", bound=View)

TRACKING = "batch.kubernetes.io/job-tracking"
CLAIM_SPEC: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
INDEX = "batch.kubernetes.io/job-completion-index"


def job(name: str = "work", **spec: Any) -> Document:
    """With the defaults that an API server would fill in."""
    labels = {"job-name": name}
    pod_template = template(labels)
    pod_template["spec"]["restartPolicy"] = spec.pop("restart", "Never")
    defaults = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            **defaults,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {"matchLabels": labels},
            "template": pod_template,
            **{part: value for part, value in spec.items() if value is not None},
        }
        | ({"completions": None} if "completions" in spec and spec["completions"] is None else {}),
    }


def job_view(name: str = "work", *, status: Document | None = None, going: bool = False, **spec: Any) -> Job:
    document = job(name, **spec)
    document["metadata"] |= identity(name, going)
    document["status"] = status or {}
    return decode_as(Job, msgspec.json.encode(document))


def job_pod(
    name: str,
    phase: str = "Running",
    *,
    index: int | None = None,
    counted: bool = False,
    ready: bool = False,
    going: bool = False,
    exit_code: int | None = None,
    ended_ago_s: float = 0,
    restarts: int = 0,
    condition: str = "",
    annotations: Mapping[str, str] | None = None,
    on: str = "n1",
) -> Pod:
    """A pod that its Job has not counted yet, unless `counted`."""
    notes = {**(annotations or {}), **({INDEX: str(index)} if index is not None else {})}
    conditions = (
        [{"type": "Ready", "status": "True", "lastTransitionTime": format_rfc3339(NOW_S - 60)}] if ready else []
    )
    if condition:
        conditions.append({"type": condition, "status": "True"})
    status: Document = {"name": "c", "restartCount": restarts}
    if exit_code is not None:
        ended = format_rfc3339(NOW_S - ended_ago_s)
        status["state"] = {"terminated": {"exitCode": exit_code, "finishedAt": ended}}
    metadata = identity(name, going) | {
        "creationTimestamp": format_rfc3339(NOW_S - 3600),
        "labels": {"job-name": "work"},
        "annotations": notes,
        "finalizers": [] if counted else [TRACKING],
    }
    return view_of(
        Pod, metadata, {"nodeName": on}, {"phase": phase, "conditions": conditions, "containerStatuses": [status]}
    )


def cron_job(name: str = "tick", schedule: str = "* * * * *", **spec: Any) -> Document:
    """With the defaults that an API server would fill in."""
    job_spec = job(name)["spec"]
    del job_spec["selector"], job_spec["template"]["metadata"]["labels"]  # the API server sets them for each Job
    job_template = {"metadata": {"labels": {"from": name}}, "spec": job_spec}
    defaults = {"concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "suspend": False, "jobTemplate": job_template, **defaults, **spec},
    }


def cron_job_view(*, created: str, status: Document | None = None, **parts: Any) -> CronJob:
    document = cron_job(**parts)
    document["metadata"] |= identity(document["metadata"]["name"]) | {"creationTimestamp": created}
    document["status"] = status or {}
    return decode_as(CronJob, msgspec.json.encode(document))


def daemon_set(
    name: str = "agent",
    *,
    image: str = "app:1",
    update: Document | None = None,
    strategy: str = "RollingUpdate",
    pod_spec: Document | None = None,
    **spec: Any,
) -> Document:
    """With the defaults that an API server would fill in."""
    labels = {"app": name}
    pod_template = template(labels, image)
    pod_template["spec"] |= pod_spec or {}
    how: Document = {"type": strategy}
    if strategy == "RollingUpdate":
        how["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0, **(update or {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": pod_template,
            "updateStrategy": how,
            "revisionHistoryLimit": 10,
            **spec,
        },
    }


def daemon_set_view(*, status: Document | None = None, generation: int = 1, **parts: Any) -> DaemonSet:
    document = daemon_set(**parts)
    document["metadata"] |= identity(document["metadata"]["name"]) | {"generation": generation}
    document["status"] = status or {}
    return decode_as(DaemonSet, msgspec.json.encode(document))


def node(name: str, *, labels: Mapping[str, str] | None = None, taints: Sequence[str] = ()) -> Document:
    """Taints as `key:Effect` or `key=value:Effect`."""
    listed = []
    for taint in taints:
        key, _, effect = taint.partition(":")
        key, _, value = key.partition("=")
        listed.append({"key": key, "effect": effect, **({"value": value} if value else {})})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"taints": listed},
    }


def node_view(name: str, **parts: Any) -> Node:
    return decode_as(Node, msgspec.json.encode(node(name, **parts)))


def stateful_set(
    name: str = "db", *, replicas: int = 3, image: str = "app:1", partition: int = 0, **spec: Any
) -> Document:
    """With the defaults that an API server would fill in."""
    labels = {"app": name}
    claims = [{"metadata": {"name": claim}, "spec": CLAIM_SPEC} for claim in spec.pop("claims", ())]
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": template(labels, image),
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
            "revisionHistoryLimit": 10,
            "volumeClaimTemplates": claims,
            **spec,
        },
    }


def stateful_set_view(*, status: Document | None = None, going: bool = False, **parts: Any) -> StatefulSet:
    document = stateful_set(**parts)
    document["metadata"] |= identity(document["metadata"]["name"], going) | {"generation": 1}
    document["status"] = status or {}
    return decode_as(StatefulSet, msgspec.json.encode(document))


def member(
    ordinal: int,
    *,
    state: str = "ready",
    revision: str = "db-1",
    ready_for_s: float = 60,
    claims: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> Pod:
    """A pod of `db`: `ready`, `unready`, `pending`, `going`, `failed` or `succeeded`."""
    name = f"db-{ordinal}"
    phases = {"pending": "Pending", "failed": "Failed", "succeeded": "Succeeded"}
    is_ready = state in ("ready", "going")
    since = format_rfc3339(NOW_S - ready_for_s)
    ready = {"type": "Ready", "status": "True" if is_ready else "False", "lastTransitionTime": since}
    names = {"statefulset.kubernetes.io/pod-name": name, "controller-revision-hash": revision, "app": "db"}
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims]
    return view_of(
        Pod,
        identity(name, state == "going") | {"labels": {**names, **(labels or {})}},
        {"nodeName": "n1", "volumes": volumes},
        {"phase": phases.get(state, "Running"), "conditions": [ready]},
    )


def claim_view(name: str, *owners: tuple[str, str, str], controller: bool = True) -> PersistentVolumeClaim:
    """Owners as (kind, name, uid)."""
    references = [
        {
            "apiVersion": "v1" if kind == "Pod" else "apps/v1",
            "kind": kind,
            "name": owner,
            "uid": uid,
            "controller": controller,
        }
        for kind, owner, uid in owners
    ]
    return view_of(PersistentVolumeClaim, identity(name) | {"ownerReferences": references}, {}, {})


def identity(name: str, going: bool = False) -> Document:
    metadata: Document = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    return metadata | ({"deletionTimestamp": format_rfc3339(NOW_S)} if going else {})


def view_of(view: type[AnyView], metadata: Document, spec: Document, status: Document) -> AnyView:
    return decode_as(view, msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status}))


def storm_of(seed: int) -> Storm:
    """A few hundred requests during which anything may get lost, refused or late."""
    outcomes = [Outcome.REQUEST_LOST, Outcome.ANSWER_LOST, Outcome.CONFLICT, Outcome.BROKEN, Outcome.DONE]
    likelihoods = {"create": 0.2, "update": 0.3, "patch": 0.3, "delete": 0.2, "get": 0.2, "next_batch": 0.02}
    return Storm(Entropy(seed), likelihoods, outcomes, delay_s_max=0.5, requests_max=300)
