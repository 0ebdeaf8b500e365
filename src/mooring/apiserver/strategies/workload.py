"""What the strategies of all kinds that make pods share: the warnings, and an empty status that shows its zeros."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategies.pod_disabled import drop_disabled_template_fields
from mooring.apiserver.strategies.pod_warnings import pod_template_warnings
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.names import dns_label_faults


class WorkloadStrategy(Strategy):
    """A kind whose spec holds a pod template.

    Where `shares_parts` is said, everything that is filled in or judged here is the spec, or is in `default_metadata`.
    """

    def empty_status(self) -> Document:
        """What Go writes of a status in which nothing is set."""
        return {}

    def template(self, obj: Document) -> Document:
        template: Document = obj["spec"]["template"]
        return template

    def default_metadata(self, metadata: Document) -> None:
        """Fill in metadata; only where `shares_parts`."""

    def default_update(self, obj: Document, old: Document) -> None:
        if self.shares_parts and obj["spec"] is old["spec"]:
            self.default_metadata(obj["metadata"])
        else:
            self.default(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = self.empty_status()
        obj["metadata"]["generation"] = 1
        drop_disabled_template_fields(self.template(obj), None)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        if obj["spec"] is not old["spec"]:
            drop_disabled_template_fields(self.template(obj), self.template(old))
        super().prepare_for_update(obj, old, call)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return pod_template_warnings(self.template(obj), "spec.template")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return pod_template_warnings(self.template(obj), "spec.template")


def pod_name_warnings(name: str) -> list[str]:
    """The name becomes a part of the names and hostnames of pods."""
    texts = dns_label_faults(name)
    if not texts:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(texts)}]"
    ]
