"""ResourceClaimTemplate (resource.k8s.io/v1)."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.resource_claim import default_resource_claim_template, resource_claim_template_faults
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables.columns import NAME_AND_AGE
from mooring.apiserver.validation.fields import Fault, invalid
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.values import internal_value, means_the_same

RESOURCE_CLAIM_TEMPLATE_TABLE = NAME_AND_AGE


class ResourceClaimTemplateStrategy(Strategy):
    table = RESOURCE_CLAIM_TEMPLATE_TABLE

    def default(self, obj: Document) -> None:
        default_resource_claim_template(obj)

    def validate(self, obj: Document, call: Call) -> list[Fault]:
        return call.prior_faults + super().validate(obj, call)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return resource_claim_template_faults(obj["spec"], "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new template, then as a change."""
        faults = self.meta_faults(obj)
        faults += resource_claim_template_faults(obj["spec"], "spec")
        faults += self.meta_update_faults(obj, old)
        if not means_the_same(obj["spec"], old["spec"], "resource", "ResourceClaimTemplateSpec"):
            shown = internal_value(obj["spec"], "ResourceClaimTemplateSpec", "resource")
            faults.append(invalid("spec", shown, IMMUTABLE))
        return faults


STRATEGY = ResourceClaimTemplateStrategy
