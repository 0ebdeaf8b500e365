"""Whole objects as dictionaries, to be changed and written back, and the conditions in their status.

A view drops the fields that it does not know, so every write starts from a document. It carries the resourceVersion
of the view: a write that would overwrite another one fails with a conflict.

The time of a DisruptionTarget condition that is true already stays: it is when the disruption began.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import place_of
from mooring.api.views.meta import ApiObject, ObjectWithRaw
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Job, JobCondition
from mooring.client.errors import StatusError
from mooring.client.interface import Client

NAMESPACE_TERMINATING = "NamespaceTerminating"

decode_document: Callable[[bytes], Document] = msgspec.json.Decoder(dict[str, object]).decode
"""An object of the API as a dictionary."""


def document_of(view: ObjectWithRaw) -> Document:
    """The whole object as a new dictionary."""
    assert view.raw, f"{view.kind} {view.key} was not read from JSON, so there is nothing to write back"
    return decode_document(view.raw)


def view_document(view: msgspec.Struct) -> Document:
    """A view, such as a status, in the form of the API: without empty fields and zeros."""
    return decode_document(msgspec.json.encode(view))


async def read_document(client: Client, view: ApiObject) -> Document:
    """The object as the API has it now. Raises `ClientError`."""
    return decode_document(await client.get(*place_of(view)))


def owner_reference(owner: ApiObject) -> Document:
    """The controller reference to an owner."""
    return controller_reference(owner.api_version, owner.kind, owner.metadata.name, owner.metadata.uid)


def controller_reference(api_version: str, kind: str, name: str, uid: str) -> Document:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_namespace_terminating(error: Exception) -> bool:
    """Whether a creation was rejected because its namespace is terminating. Retries cannot succeed."""
    return isinstance(error, StatusError) and any(cause.reason == NAMESPACE_TERMINATING for cause in error.causes)


# --- conditions -----------------------------------------------------------------------------------------------


REPLICA_FAILURE = "ReplicaFailure"
DISRUPTION_TARGET = "DisruptionTarget"


def finished_condition(job: Job) -> JobCondition | None:
    """The condition of a finished Job, Complete or Failed. None if it is not finished."""
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return condition
    return None


def disruption_condition(pod: Pod, reason: str, message: str, now: str) -> Document | None:
    """The condition DisruptionTarget for a pod. None if the pod has the same one."""
    since = now
    for condition in pod.status.conditions:
        if condition.type == DISRUPTION_TARGET and condition.status == "True":
            if condition.reason == reason and condition.message == message:
                return None
            since = condition.last_transition_time or now
    condition_document: Document = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": since,
    }
    if pod.metadata.generation:
        condition_document["observedGeneration"] = pod.metadata.generation
    return condition_document
