"""Each source of a volume asks for what its plugin needs."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.persistent_volume_sources import sources_faults
from tests.apiserver.field_errors import messages

IQN = "iqn.2001-04.com.example:storage.disk"
SECOND = "Forbidden: may not specify more than 1 volume type"


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({}, ["s: Required value: must specify a volume type"], id="none"),
        pytest.param({"hostPath": {}}, ["s.hostPath.path: Required value"], id="no path"),
        pytest.param(
            {"hostPath": {"path": "/a/../b", "type": "Odd"}},
            [
                "s.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
                's.hostPath.type: Unsupported value: "Odd": supported values: "", "BlockDevice", "CharDevice", '
                '"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
            ],
            id="a path that climbs",
        ),
        pytest.param(
            {"nfs": {"server": "a", "path": "/b"}, "cephfs": {}, "csi": {}},
            [f"s.cephFS: {SECOND}", f"s.csi: {SECOND}"],
            id="three sources",
        ),
        pytest.param(
            {"hostPath": {"path": "/a"}, "flexVolume": {"driver": "d"}}, [], id="flex volumes are never too many"
        ),
        pytest.param(
            {"gcePersistentDisk": {"partition": 300}},
            [
                "s.persistentDisk.pdName: Required value",
                "s.persistentDisk.partition: Invalid value: 300: must be between 1 and 255, inclusive",
            ],
            id="a disk without a name",
        ),
        pytest.param(
            {"nfs": {"server": "a", "path": "b"}},
            ['s.nfs.path: Invalid value: "b": must be an absolute path'],
            id="a relative path",
        ),
        pytest.param(
            {"flocker": {"datasetName": "a/b", "datasetUUID": "c"}},
            [
                's.flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously',
                "s.flocker.datasetName: Invalid value: \"a/b\": must not contain '/'",
            ],
            id="two names for one set",
        ),
        pytest.param(
            {"quobyte": {"registry": "a:1,b", "volume": "v"}},
            [
                's.quobyte.registry: Invalid value: "a:1,b": must be a host:port pair or multiple pairs separated by '
                "commas"
            ],
            id="a registry without a port",
        ),
        pytest.param({"quobyte": {"registry": "a:1,[::1]:2", "volume": "v"}}, [], id="registries"),
        pytest.param({"iscsi": {"targetPortal": "p", "iqn": IQN, "lun": 0}}, [], id="a target"),
        pytest.param(
            {"iscsi": {"targetPortal": "p", "iqn": "odd", "lun": 256, "chapAuthSession": True, "initiatorName": "x"}},
            [
                's.iscsi.iqn: Invalid value: "odd": must be valid format',
                "s.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
                "s.iscsi.secretRef: Required value",
                's.iscsi.initiatorname: Invalid value: "x": must be valid format',
            ],
            id="a target that is none",
        ),
        pytest.param(
            {"fc": {"targetWWNs": ["a"], "wwids": ["b"]}},
            [
                's.fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be specified simultaneously',
                "s.fc.lun: Required value: lun is required if targetWWNs is specified",
            ],
            id="two ways to name a target",
        ),
        pytest.param(
            {"flexVolume": {"driver": "d", "options": {"x.K8s.io/a": "b", "mine": "c"}}},
            [
                's.flexVolume.options[x.K8s.io/a]: Invalid value: "x.K8s.io/a": kubernetes.io and k8s.io namespaces '
                "are reserved"
            ],
            id="options that are not one's own",
        ),
        pytest.param(
            {"azureDisk": {"diskName": "a", "diskURI": "b", "kind": "Managed", "cachingMode": "None"}},
            [
                's.azureDisk.diskURI: Unsupported value: "b": supported values: "/subscriptions/{sub-id}/'
                'resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"'
            ],
            id="a disk at another place",
        ),
        pytest.param(
            {"local": {"path": "/a"}},
            ["s.nodeAffinity: Required value: Local volume requires node affinity"],
            id="a local volume is somewhere",
        ),
        pytest.param(
            {"csi": {"driver": "x" * 64, "nodePublishSecretRef": {"name": "a", "namespace": "b.c"}}},
            [
                "s.csi.driver: Too long: may not be more than 63 bytes",
                "s.csi.volumeHandle: Required value",
                's.csi.nodePublishSecretRef.namespace: Invalid value: "b.c": must not contain dots',
            ],
            id="a driver with a long name",
        ),
        pytest.param({"csi": {"driver": "My.Driver", "volumeHandle": "h"}}, [], id="names of drivers have no case"),
    ],
)
def test_sources(spec: Document, faults: list[str]) -> None:
    assert messages(sources_faults(spec, "v", "s", has_affinity=False)) == faults


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("awsElasticBlockStore", ["volumeID"]),
        ("glusterfs", ["endpoints", "path"]),
        ("rbd", ["monitors", "image"]),
        ("cephfs", ["monitors"]),
        ("cinder", ["volumeID"]),
        ("azureFile", ["secretName", "shareName"]),
        ("vsphereVolume", ["volumePath"]),
        ("photonPersistentDisk", ["pdID"]),
        ("portworxVolume", ["volumeID"]),
        ("azureDisk", ["diskName", "diskURI"]),
        ("scaleIO", ["gateway", "system", "volumeName"]),
        ("storageos", ["volumeName"]),
        ("csi", ["driver", "volumeHandle"]),
    ],
)
def test_fields_that_must_be_filled(source: str, fields: list[str]) -> None:
    faults = messages(sources_faults({source: {}}, "v", "s", has_affinity=False))
    assert faults == [f"s.{source}.{field}: Required value" for field in fields]
