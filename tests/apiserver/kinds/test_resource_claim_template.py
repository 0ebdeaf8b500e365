"""Tests of kinds.resource_claim_template."""

from __future__ import annotations

from mooring.api.kinds import RESOURCE_CLAIM_TEMPLATE
from mooring.apiserver.validation.fields import forbidden
from tests.apiserver.core_documents import call, changed, created, document, strategy
from tests.apiserver.field_errors import messages

SPEC = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}


def test_a_template_never_changes() -> None:
    made = document(RESOURCE_CLAIM_TEMPLATE, spec=SPEC)
    assert created(RESOURCE_CLAIM_TEMPLATE, made) == []
    assert changed(RESOURCE_CLAIM_TEMPLATE, made)[0] == []
    first, second = changed(RESOURCE_CLAIM_TEMPLATE, made, spec={**SPEC, "metadata": {"name": "x"}})[0]
    assert first == "spec.metadata.name: Forbidden: cannot be set"
    assert second.endswith(": field is immutable")


def test_the_order_of_errors() -> None:
    asked = call(RESOURCE_CLAIM_TEMPLATE)
    asked.prior_errors = [forbidden("spec", "no")]
    made = document(RESOURCE_CLAIM_TEMPLATE, spec=SPEC)
    assert messages(strategy(RESOURCE_CLAIM_TEMPLATE).validate(made, asked)) == ["spec: Forbidden: no"]
