"""What storage is if nobody says otherwise."""

from __future__ import annotations

from mooring.api.kinds import CSI_DRIVER, STORAGE_CLASS, VOLUME_ATTACHMENT
from mooring.apiserver.kinds.csi_driver import default_csi_driver
from tests.apiserver.core_documents import document


def test_a_class_deletes_and_binds_at_once() -> None:
    made = document(STORAGE_CLASS, provisioner="a/b")
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")


def test_a_driver_attaches_and_little_else() -> None:
    made = document(CSI_DRIVER, spec={"volumeLifecycleModes": []})
    assert made["spec"] == {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    }
    again = {"spec": dict(made["spec"])}
    default_csi_driver(again)
    assert again["spec"] == made["spec"]


def test_a_volume_inside_an_attachment_gets_the_defaults_of_its_source_only() -> None:
    inline = {"hostPath": {"path": "/x"}, "capacity": {"storage": "1Gi"}}
    made = document(VOLUME_ATTACHMENT, spec={"source": {"inlineVolumeSpec": inline}})
    assert made["spec"]["source"]["inlineVolumeSpec"] == {**inline, "hostPath": {"path": "/x", "type": ""}}
