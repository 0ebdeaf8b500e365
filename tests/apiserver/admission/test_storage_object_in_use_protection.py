"""What holds data is protected by a finalizer."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, VOLUME_ATTRIBUTES_CLASS, Kind
from mooring.apiserver.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from mooring.apiserver.call import Operation
from tests.apiserver.admission.builders import admitted, attempt


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        pytest.param(PERSISTENT_VOLUME, [], ["kubernetes.io/pv-protection"], id="a volume"),
        pytest.param(PERSISTENT_VOLUME_CLAIM, ["a/b"], ["a/b", "kubernetes.io/pvc-protection"], id="a claim"),
        pytest.param(VOLUME_ATTRIBUTES_CLASS, [], ["kubernetes.io/vac-protection"], id="a class of attributes"),
        pytest.param(
            PERSISTENT_VOLUME,
            ["kubernetes.io/pv-protection", "a/b"],
            ["kubernetes.io/pv-protection", "a/b"],
            id="not twice",
        ),
    ],
)
def test_finalizers(kind: Kind, given: list[str], expected: list[str]) -> None:
    made = attempt(kind, {"metadata": {"name": "x", "finalizers": given}})
    assert admitted(StorageObjectInUseProtection(), made)["metadata"]["finalizers"] == expected


def test_other_kinds_are_left_alone() -> None:
    assert not StorageObjectInUseProtection().handles(CONFIG_MAP, "", Operation.CREATE)
