"""The limit ranges of a namespace are applied."""

from __future__ import annotations

import pytest

from mooring.api.kinds import LIMIT_RANGE, PERSISTENT_VOLUME_CLAIM, POD, Kind
from mooring.apiserver.admission.limit_ranger import LimitRanger
from mooring.apiserver.call import Operation
from mooring.client.errors import ForbiddenError
from tests.apiserver.admission.builders import Known, admitted, attempt, check, container, named, pod

BOUNDS = named(
    "b", spec={"limits": [{"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}, "default": {"cpu": "1"}}]}
)
KNOWN = Known({LIMIT_RANGE: [BOUNDS]})


def test_defaults_come_first() -> None:
    made = admitted(LimitRanger(), attempt(POD, pod()), KNOWN)
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}


def test_all_faults_are_told_in_brackets() -> None:
    with pytest.raises(ForbiddenError) as caught:
        check(LimitRanger(), attempt(POD, pod(containers=[container("a", {}, {"cpu": "2"})])), KNOWN)
    assert caught.value.message == (
        'pods "p" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, '
        "maximum memory usage per Container is 1Gi.  No limit is specified]"
    )


def test_a_claim_is_checked_and_not_changed() -> None:
    bounds = named("b", spec={"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]})
    claim = named("c", spec={"resources": {"requests": {"storage": "2Gi"}}})
    with pytest.raises(
        ForbiddenError, match="maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    ):
        check(LimitRanger(), attempt(PERSISTENT_VOLUME_CLAIM, claim), Known({LIMIT_RANGE: [bounds]}))


def test_a_pod_on_its_way_out_is_left_alone() -> None:
    old = pod()
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    check(LimitRanger(), attempt(POD, pod(), old, subresource="resize"), KNOWN)


@pytest.mark.parametrize(
    ("kind", "subresource", "operation", "expected"),
    [
        (POD, "", Operation.CREATE, True),
        (POD, "", Operation.UPDATE, False),
        (POD, "resize", Operation.UPDATE, True),
        (POD, "status", Operation.UPDATE, False),
        (PERSISTENT_VOLUME_CLAIM, "", Operation.UPDATE, True),
        (PERSISTENT_VOLUME_CLAIM, "status", Operation.UPDATE, False),
    ],
)
def test_handles(kind: Kind, subresource: str, operation: Operation, expected: bool) -> None:
    assert LimitRanger().handles(kind, subresource, operation) is expected
