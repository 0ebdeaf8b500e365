"""An attachment begins detached, and its status is written through another door."""

from __future__ import annotations

from mooring.api.kinds import VOLUME_ATTACHMENT
from tests.apiserver.core_documents import changed, created, document, strategy

SPEC = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}


def test_a_new_attachment_is_detached() -> None:
    made = document(VOLUME_ATTACHMENT, spec=SPEC, status={"attached": True})
    assert created(VOLUME_ATTACHMENT, made) == []
    assert made["status"] == {"attached": False}


def test_each_door_changes_its_own_part() -> None:
    old = document(VOLUME_ATTACHMENT, spec=SPEC)
    faults, new = changed(VOLUME_ATTACHMENT, old, status={"attached": True})
    assert (faults, new["status"]) == ([], {"attached": False})
    parts = {"status": {"attached": True}, "spec": {**SPEC, "nodeName": "m"}}
    faults, new = changed(VOLUME_ATTACHMENT, old, "status", metadata={"labels": {"a": "b"}}, **parts)
    assert (faults, new["status"], new["spec"]) == ([], {"attached": True}, SPEC)
    assert "labels" not in new["metadata"]
    faults, _ = changed(VOLUME_ATTACHMENT, old, "status", status={"detachError": {"errorCode": -1}})
    assert [fault.partition(":")[0] for fault in faults] == ["status.detachError.errorCode"]
    assert strategy(VOLUME_ATTACHMENT, "status").ignored_fields == (("metadata",), ("spec",))
