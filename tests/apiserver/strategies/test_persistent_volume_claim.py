"""What a claim wants in its volume is said in two fields that agree."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM
from tests.apiserver.core_documents import call, changed, created, document, strategy

SPEC: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CLAIM: Document = {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "a"}
OTHER: Document = {"apiGroup": "example.com", "kind": "Image", "name": "a"}


@pytest.mark.parametrize(
    ("given", "source", "reference"),
    [
        pytest.param({}, None, None, id="nothing"),
        pytest.param({"dataSource": CLAIM}, CLAIM, CLAIM, id="a claim, the old way"),
        pytest.param({"dataSourceRef": CLAIM}, CLAIM, CLAIM, id="a claim, the new way"),
        pytest.param({"dataSource": OTHER}, None, None, id="the old way knows only claims and snapshots"),
        pytest.param({"dataSourceRef": OTHER}, OTHER, OTHER, id="the new way knows everything"),
        pytest.param({"dataSourceRef": {**CLAIM, "namespace": "b"}}, None, None, id="but nothing elsewhere"),
    ],
)
def test_sources(given: Document, source: Document | None, reference: Document | None) -> None:
    claim = document(PERSISTENT_VOLUME_CLAIM, spec={**SPEC, **given}, status={"phase": "Bound"})
    assert created(PERSISTENT_VOLUME_CLAIM, claim) == []
    assert (claim["spec"].get("dataSource"), claim["spec"].get("dataSourceRef")) == (source, reference)
    assert claim["status"] == {"phase": "Pending"}


def test_a_claim_that_was_stored_with_one_field_is_seen_with_both() -> None:
    old = document(PERSISTENT_VOLUME_CLAIM, spec={**SPEC, "dataSource": CLAIM})
    faults, claim = changed(PERSISTENT_VOLUME_CLAIM, old, spec={**SPEC, "dataSourceRef": CLAIM})
    assert faults == []
    assert claim["spec"]["dataSource"] == CLAIM


def test_the_status_has_its_own_door() -> None:
    old = document(PERSISTENT_VOLUME_CLAIM, spec=SPEC)
    faults, claim = changed(PERSISTENT_VOLUME_CLAIM, old, "status", spec={}, status={"phase": "Bound"})
    assert (faults, claim["spec"], claim["status"]) == ([], old["spec"], {"phase": "Bound"})


def test_parts_of_bytes_are_told() -> None:
    metadata = {"annotations": {"volume.beta.kubernetes.io/storage-class": "a"}}
    resources = {"requests": {"storage": "1500m"}, "limits": {"storage": "2500m"}}
    claim = document(PERSISTENT_VOLUME_CLAIM, metadata, spec={**SPEC, "resources": resources})
    assert strategy(PERSISTENT_VOLUME_CLAIM).warnings_on_create(claim, call(PERSISTENT_VOLUME_CLAIM)) == [
        "metadata.annotations[volume.beta.kubernetes.io/storage-class]: "
        'deprecated since v1.8; use "storageClassName" attribute instead',
        'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
        'spec.resources.limits[storage]: fractional byte value "2500m" is invalid, must be an integer',
    ]
