"""A volume is pending first, and remembers when its phase changed."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME
from tests.apiserver.core_documents import NOW, call, changed, created, document, strategy

SPEC: Document = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
EARLIER, LATER = "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"


def test_a_new_volume_is_pending() -> None:
    volume = document(PERSISTENT_VOLUME, spec=SPEC, status={"phase": "Bound"})
    assert created(PERSISTENT_VOLUME, volume) == []
    assert volume["status"] == {"phase": "Pending", "lastPhaseTransitionTime": NOW}


def test_a_change_is_judged_twice() -> None:
    old = document(PERSISTENT_VOLUME, spec=SPEC)
    faults, volume = changed(PERSISTENT_VOLUME, old, spec={**SPEC, "accessModes": []}, status={"phase": "Bound"})
    assert faults == ["spec.accessModes: Required value"] * 2
    assert volume["status"] == old["status"]


@pytest.mark.parametrize(
    ("status", "since"),
    [
        pytest.param({"phase": "Pending"}, EARLIER, id="the same phase since then"),
        pytest.param({"phase": "Pending", "lastPhaseTransitionTime": LATER}, LATER, id="somebody knows better"),
        pytest.param({"phase": "Bound"}, NOW, id="another phase since now"),
        pytest.param({"phase": "Bound", "lastPhaseTransitionTime": EARLIER}, NOW, id="a time that was left over"),
        pytest.param({"phase": "Bound", "lastPhaseTransitionTime": LATER}, LATER, id="a time of one's own"),
    ],
)
def test_when_the_phase_changed(status: Document, since: str) -> None:
    old = document(PERSISTENT_VOLUME, spec=SPEC, status={"phase": "Pending", "lastPhaseTransitionTime": EARLIER})
    faults, volume = changed(PERSISTENT_VOLUME, old, "status", spec={}, status=status)
    assert faults == []
    assert volume["spec"] == old["spec"]
    assert volume["status"] == {"phase": status["phase"], "lastPhaseTransitionTime": since}


def test_what_is_outdated_is_told() -> None:
    terms = [{"matchExpressions": [{"key": "beta.kubernetes.io/arch", "operator": "Exists"}]}]
    spec = {**SPEC, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}, "rbd": {}}
    metadata = {"annotations": {"volume.beta.kubernetes.io/storage-class": "a"}}
    volume = document(PERSISTENT_VOLUME, metadata, spec={**spec, "persistentVolumeReclaimPolicy": "Recycle"})
    warnings = strategy(PERSISTENT_VOLUME).warnings_on_create(volume, call(PERSISTENT_VOLUME))
    assert [warning.partition(":")[0] for warning in warnings] == [
        "metadata.annotations[volume.beta.kubernetes.io/storage-class]",
        "spec.persistentVolumeReclaimPolicy",
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key",
        "spec.rbd",
    ]
    assert strategy(PERSISTENT_VOLUME).warnings_on_update(volume, volume, call(PERSISTENT_VOLUME)) == warnings
