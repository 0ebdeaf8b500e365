"""What is wrong with a change of the ephemeral containers of a pod.

Comes in   a pod as it shall become and as it is; they differ in nothing else
Goes out   faults

 1. Ephemeral containers are added; they are never changed and never taken away.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.validation.fields import Fault, forbidden
from mooring.apiserver.validation.pod import pod_faults
from mooring.apiserver.validation.pod_annotations import pod_annotations_update_faults
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.pod_spec import MIRROR_ANNOTATION, WHOLE_OBJECT
from mooring.apiserver.validation.values import internal_diff, means_the_same

_PATH = "spec.ephemeralContainers"


def ephemeral_containers_update_faults(pod: Document, old: Document, options: PodOptions) -> list[Fault]:
    faults = pod_faults(pod, options)
    faults += pod_annotations_update_faults(pod, old, "metadata.annotations", options)
    containers = {each.get("name", ""): each for each in pod["spec"].get("ephemeralContainers") or ()}
    for was in old["spec"].get("ephemeralContainers") or ():
        name = was.get("name", "")
        told = f"existing ephemeral containers {quoted(name)}"
        if name not in containers:
            faults.append(forbidden(_PATH, f"{told} may not be removed\n"))
        elif not means_the_same(containers[name], was, "core", "EphemeralContainer"):
            difference = internal_diff(was, containers[name], "EphemeralContainer")
            faults.append(forbidden(_PATH, f"{told} may not be changed\n{difference}"))
    return faults


def is_static(pod: Document) -> bool:
    """Whether a node made the pod itself, from a file: the API can only look at it."""
    return MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {})


def static_faults(detail: str) -> list[Fault]:
    """The only fault of a static pod, whatever else is wrong with it."""
    return [forbidden(WHOLE_OBJECT, detail)]
