"""PodTemplates: what is special about them.

Comes in   templates as objects of their own
Goes out   the same, prepared; faults; warnings
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.pod import default_pod_template
from mooring.apiserver.strategies.pod_disabled import drop_disabled_template_fields
from mooring.apiserver.strategies.pod_warnings import pod_template_warnings
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.pod_template import pod_template_faults
from mooring.apiserver.validation.values import means_the_same


class PodTemplateStrategy(Strategy):
    """How templates are created and changed."""

    def default(self, obj: Document) -> None:
        default_pod_template(obj["template"])

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["metadata"]["generation"] = 1
        drop_disabled_template_fields(obj["template"], None)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return pod_template_faults(obj["template"], "template")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return pod_template_warnings(obj["template"], "template")

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        drop_disabled_template_fields(obj["template"], old["template"])
        self.count_generation(obj, old)

    def count_generation(self, obj: Document, old: Document) -> None:
        if not means_the_same(obj["template"], old["template"], "core", "PodTemplateSpec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return pod_template_faults(obj["template"], "template", old["template"])

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return pod_template_warnings(obj["template"], "template")
