"""What is wrong with a template of pods, as workloads have it.

Comes in   a template with defaults, the one it replaces, its path
Goes out   faults
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden
from mooring.apiserver.validation.metadata import annotations_faults, labels_faults
from mooring.apiserver.validation.pod_annotations import pod_annotations_faults, profiles_match_faults
from mooring.apiserver.validation.pod_ratchet import options_after
from mooring.apiserver.validation.pod_spec import pod_spec_faults


def pod_template_faults(template: Document, path: str, old: Document | None = None) -> list[Fault]:
    """What is wrong with a template. Labels and annotations are told without `metadata`, as kube-apiserver does."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations, options = metadata.get("annotations") or {}, options_after(old, is_pod=False)
    faults: list[Fault] = []
    if metadata.get("labels"):
        faults += labels_faults(metadata["labels"], f"{path}.labels")
    if annotations:
        faults += annotations_faults(annotations, f"{path}.annotations")
        faults += pod_annotations_faults(annotations, spec, f"{path}.annotations", options)
    faults += pod_spec_faults(spec, None, f"{path}.spec", options)
    faults += profiles_match_faults(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        faults.append(forbidden(f"{path}.spec.ephemeralContainers", detail))
    return faults
