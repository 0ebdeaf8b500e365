"""Claims grow if their class lets them."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from mooring.apiserver.admission.persistent_volume_claim_resize import PersistentVolumeClaimResize
from mooring.client.errors import ForbiddenError
from tests.apiserver.admission.builders import Known, attempt, check, named

KNOWN = Known({STORAGE_CLASS: [named("grows", allowVolumeExpansion=True), named("stays")]})
CLASS_SAYS_NO = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def claim(storage: str, name: str = "grows", phase: str = "Bound") -> Document:
    spec = {"resources": {"requests": {"storage": storage}}, "storageClassName": name}
    return named("c", spec=spec, status={"phase": phase})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(claim("1Gi"), claim("2Gi"), id="a bound one of a class that allows it"),
        pytest.param(claim("1Gi", "stays"), claim("1024Mi", "stays"), id="the same in other words"),
        pytest.param(claim("2Gi", "stays"), claim("1Gi", "stays"), id="a smaller one"),
    ],
)
def test_allowed(old: Document, new: Document) -> None:
    check(PersistentVolumeClaimResize(), attempt(PERSISTENT_VOLUME_CLAIM, new, old), KNOWN)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param(
            claim("1Gi", phase="Pending"),
            claim("2Gi"),
            "Only bound persistent volume claims can be expanded",
            id="unbound",
        ),
        pytest.param(claim("1Gi", "stays"), claim("2Gi", "stays"), CLASS_SAYS_NO, id="the class does not allow it"),
        pytest.param(claim("1Gi", "gone"), claim("2Gi", "gone"), CLASS_SAYS_NO, id="there is no such class"),
        pytest.param(claim("1Gi", ""), claim("2Gi", ""), CLASS_SAYS_NO, id="there is no class"),
    ],
)
def test_refused(old: Document, new: Document, why: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        check(PersistentVolumeClaimResize(), attempt(PERSISTENT_VOLUME_CLAIM, new, old), KNOWN)
    assert caught.value.message == f'persistentvolumeclaims "c" is forbidden: {why}'
