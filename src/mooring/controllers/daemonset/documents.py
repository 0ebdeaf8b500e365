"""What a DaemonSet's controller sends: pods and statuses.

Comes in   a DaemonSet, the hash of its newest revision, counts
Goes out   documents

 1. Counts that Kubernetes shows even when they are zero are sent as such; the others are left out.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.views.daemon_sets import DaemonSet, DaemonSetStatus
from mooring.controllers.daemonset.nodes import tolerating
from mooring.controllers.daemonset.plan import REVISION_HASH, TEMPLATE_GENERATION, template_generation
from mooring.controllers.documents import document_of
from mooring.controllers.pod_control import pod_of_template

_COUNTS = {
    "current_number_scheduled": "currentNumberScheduled",
    "number_misscheduled": "numberMisscheduled",
    "desired_number_scheduled": "desiredNumberScheduled",
    "number_ready": "numberReady",
    "updated_number_scheduled": "updatedNumberScheduled",
    "number_available": "numberAvailable",
    "number_unavailable": "numberUnavailable",
}
_COUNTS_SHOWN_AS_ZERO = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)


def daemon_pod(wanted: DaemonSet, hashed: str) -> Document:
    """A pod as the template wants it, but for its node."""
    pod = pod_of_template(document_of(wanted)["spec"].get("template") or {}, wanted)
    labels = {**(pod["metadata"].get("labels") or {})}
    generation = template_generation(wanted)
    if generation is not None:
        labels[TEMPLATE_GENERATION] = generation
    if hashed:
        labels[REVISION_HASH] = hashed
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": tolerating(pod["spec"])}


def is_same_status(wanted: DaemonSet, counts: DaemonSetStatus) -> bool:
    return wanted.status.observed_generation >= wanted.metadata.generation and all(
        getattr(wanted.status, name) == getattr(counts, name) for name in _COUNTS
    )


def status_document(status: Document, counts: DaemonSetStatus) -> Document:
    """The status with these counts, and everything else that it has."""
    document = dict(status)
    for name, sent_as in _COUNTS.items():
        count = getattr(counts, name)
        if count or sent_as in _COUNTS_SHOWN_AS_ZERO:
            document[sent_as] = count
        else:
            document.pop(sent_as, None)
    return document
