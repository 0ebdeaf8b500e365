"""Storage classes warn of old labels, and are judged twice when they change."""

from __future__ import annotations

from mooring.api.kinds import STORAGE_CLASS
from tests.apiserver.core_documents import call, changed, created, document, strategy

OLD_LABEL = [{"matchLabelExpressions": [{"key": "beta.kubernetes.io/os", "values": ["linux"]}]}]


def test_old_labels_are_warned_of() -> None:
    made = document(STORAGE_CLASS, provisioner="a/b", allowedTopologies=OLD_LABEL)
    assert created(STORAGE_CLASS, made) == []
    wanted = [
        'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
    assert strategy(STORAGE_CLASS).warnings_on_create(made, call(STORAGE_CLASS)) == wanted
    assert strategy(STORAGE_CLASS).warnings_on_update(made, made, call(STORAGE_CLASS)) == wanted


def test_a_change_must_be_right_and_allowed() -> None:
    faults, _ = changed(STORAGE_CLASS, document(STORAGE_CLASS, provisioner="a/b"), provisioner="")
    assert faults == ["provisioner: Required value", 'provisioner: Invalid value: "": field is immutable']
