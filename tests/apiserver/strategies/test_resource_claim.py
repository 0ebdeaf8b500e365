"""The spec of a claim never changes; its status does, and loses reports on devices that were taken away."""

from __future__ import annotations

from mooring.api.kinds import RESOURCE_CLAIM
from mooring.apiserver.validation.fields import forbidden
from tests.apiserver.core_documents import call, changed, created, document, strategy
from tests.apiserver.field_errors import messages

SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
DEVICE = {"driver": "d", "pool": "p", "device": "x"}
STATUS = {"allocation": {"devices": {"results": [{"request": "r", **DEVICE}]}}, "devices": [DEVICE]}


def test_a_new_claim_is_not_allocated() -> None:
    made = document(RESOURCE_CLAIM, spec=SPEC, status=STATUS)
    assert created(RESOURCE_CLAIM, made) == []
    assert made["status"] == {}


def test_the_spec_never_changes() -> None:
    old = document(RESOURCE_CLAIM, spec=SPEC)
    assert changed(RESOURCE_CLAIM, old, metadata={"labels": {"a": "b"}})[0] == []
    (fault,) = changed(RESOURCE_CLAIM, old, spec={})[0]
    assert fault.startswith("spec: Invalid value: {")
    assert fault.endswith(": field is immutable")


def test_reports_go_with_their_devices() -> None:
    old = document(RESOURCE_CLAIM, spec=SPEC, status=STATUS)
    faults, new = changed(RESOURCE_CLAIM, old, "status", status={"devices": [DEVICE]}, spec={})
    assert (faults, new["status"], new["spec"]) == ([], {}, old["spec"])


def test_what_was_found_before_is_told_first() -> None:
    asked = call(RESOURCE_CLAIM)
    asked.prior_faults = [forbidden("spec", "no")]
    made = document(RESOURCE_CLAIM, spec={"devices": {"requests": [{"name": "r"}]}})
    assert messages(strategy(RESOURCE_CLAIM).validate(made, asked))[0] == "spec: Forbidden: no"
    assert messages(strategy(RESOURCE_CLAIM, "status").validate_update(made, made, asked)) == ["spec: Forbidden: no"]
    assert strategy(RESOURCE_CLAIM, "status").ignored_fields == (("metadata",), ("spec",))
