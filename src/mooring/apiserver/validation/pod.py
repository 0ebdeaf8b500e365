"""What is wrong with a pod: a new one, or any that is written.

Comes in   a pod with defaults
Goes out   faults, in Kubernetes' order; those of the metadata come before, from `validation.metadata`
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.containers_common import container_image_space_faults
from mooring.apiserver.validation.fields import Fault, forbidden
from mooring.apiserver.validation.pod_annotations import pod_annotations_faults, profiles_match_faults
from mooring.apiserver.validation.pod_options import STRICT_POD, PodOptions
from mooring.apiserver.validation.pod_spec import pod_spec_faults


def new_pod_faults(spec: Document, metadata: Document) -> list[Fault]:
    """Errors of a new pod's spec. Of the metadata only `annotations` and `name` are read."""
    annotations = metadata.get("annotations") or {}
    faults = pod_faults({"spec": spec, "metadata": metadata}, STRICT_POD)
    if spec.get("ephemeralContainers"):
        faults.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        faults.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return faults + profiles_match_faults(annotations, spec, "spec")


def pod_faults(pod: Document, options: PodOptions) -> list[Fault]:
    """What is wrong with a pod apart from its metadata, however it is written."""
    spec: Document = pod["spec"]
    annotations = pod["metadata"].get("annotations") or {}
    faults = pod_annotations_faults(annotations, spec, "metadata.annotations", options)
    faults += pod_spec_faults(spec, pod["metadata"], "spec", options)
    if not spec.get("serviceAccountName"):
        faults += _token_faults(spec)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            faults += container_image_space_faults(container, f"spec.{kind}[{index}]")
    return faults


def _token_faults(spec: Document) -> list[Fault]:
    detail = "must not be specified when serviceAccountName is not set"
    return [
        forbidden(f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken", detail)
        for index, volume in enumerate(spec.get("volumes") or ())
        for position, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]
