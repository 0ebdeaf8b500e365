"""ResourceClaimTemplate (resource.k8s.io/v1)."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.resource_claim import default_resource_claim_spec, validate_resource_claim_template
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import NAME_AND_AGE
from mooring.apiserver.validation.fields import FieldError, invalid
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.values import internal_value, means_the_same


class ResourceClaimTemplateStrategy(Strategy):
    is_costly = True
    table = NAME_AND_AGE

    def default(self, obj: Document) -> None:
        default_resource_claim_spec(obj["spec"]["spec"])

    def validate(self, obj: Document, call: Call) -> list[FieldError]:
        return call.prior_errors + super().validate(obj, call)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_resource_claim_template(obj["spec"], "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a new template, then as a change."""
        errors = self.validate_meta(obj)
        errors += validate_resource_claim_template(obj["spec"], "spec")
        errors += self.validate_meta_update(obj, old)
        if not means_the_same(obj["spec"], old["spec"], "resource", "ResourceClaimTemplateSpec"):
            shown = internal_value(obj["spec"], "ResourceClaimTemplateSpec", "resource")
            errors.append(invalid("spec", shown, IMMUTABLE))
        return errors


STRATEGY = ResourceClaimTemplateStrategy
