"""PodTemplate (v1), and validation of the pod template of every workload."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.pod.prepare import drop_disabled_template_fields
from mooring.apiserver.kinds.pod.spec import validate_pod_annotations, validate_pod_spec, validate_profiles_match
from mooring.apiserver.kinds.pod.update import options_after
from mooring.apiserver.kinds.pod.warnings import pod_template_warnings
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import NAME, Cell, KindTable, column, containers_and_images, labels_text
from mooring.apiserver.validation.fields import FieldError, forbidden
from mooring.apiserver.validation.metadata import validate_annotations, validate_labels
from mooring.apiserver.validation.values import means_the_same


def validate_pod_template(template: Document, path: str, old: Document | None = None) -> list[FieldError]:
    """Field errors of a template. Paths of labels and annotations lack `metadata`, as in kube-apiserver."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations, options = metadata.get("annotations") or {}, options_after(old, is_pod=False)
    errors: list[FieldError] = []
    if metadata.get("labels"):
        errors += validate_labels(metadata["labels"], f"{path}.labels")
    if annotations:
        errors += validate_annotations(annotations, f"{path}.annotations")
        errors += validate_pod_annotations(annotations, spec, f"{path}.annotations", options)
    errors += validate_pod_spec(spec, None, f"{path}.spec", options)
    errors += validate_profiles_match(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", detail))
    return errors


def _pod_template_cells(obj: Document, now_s: float) -> list[Cell]:
    template = obj.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    return [obj["metadata"]["name"], *containers_and_images(template.get("spec")), labels_text(labels)]


class PodTemplateStrategy(Strategy):
    """How templates are created and changed."""

    table = KindTable(
        (
            NAME,
            column("Containers", "The names of its containers."),
            column("Images", "What they run."),
            column("Pod Labels", "The labels of pods that are made from it."),
        ),
        _pod_template_cells,
    )

    def default(self, obj: Document) -> None:
        default_pod_template(obj["template"])

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["metadata"]["generation"] = 1
        drop_disabled_template_fields(obj["template"], None)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_pod_template(obj["template"], "template")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return pod_template_warnings(obj["template"], "template")

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        drop_disabled_template_fields(obj["template"], old["template"])
        self.count_generation(obj, old)

    def count_generation(self, obj: Document, old: Document) -> None:
        if not means_the_same(obj["template"], old["template"], "core", "PodTemplateSpec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_pod_template(obj["template"], "template", old["template"])

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return pod_template_warnings(obj["template"], "template")


STRATEGY = PodTemplateStrategy
