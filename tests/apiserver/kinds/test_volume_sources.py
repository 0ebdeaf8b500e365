"""Tests of kinds.volume_sources."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.volume_sources import validate_sources
from tests.apiserver.core_documents import messages
from tests.apiserver.pod_builders import errors_of, pod


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param(
            {
                "volumes": [
                    {"name": "v0", "hostPath": {}},
                    {"name": "v1", "gitRepo": {}},
                    {"name": "v2", "gcePersistentDisk": {}},
                    {"name": "v3", "awsElasticBlockStore": {}},
                    {"name": "v4", "nfs": {}},
                    {"name": "v5", "iscsi": {}},
                    {"name": "v6", "glusterfs": {}},
                    {"name": "v7", "flocker": {}},
                    {"name": "v8", "persistentVolumeClaim": {}},
                    {"name": "v9", "rbd": {}},
                    {"name": "v10", "cinder": {}},
                    {"name": "v11", "cephfs": {}},
                    {"name": "v12", "quobyte": {}},
                    {"name": "v13", "fc": {}},
                    {"name": "v14", "flexVolume": {}},
                    {"name": "v15", "azureFile": {}},
                    {"name": "v16", "vsphereVolume": {}},
                    {"name": "v17", "photonPersistentDisk": {}},
                    {"name": "v18", "portworxVolume": {}},
                    {"name": "v19", "azureDisk": {}},
                    {"name": "v20", "storageos": {}},
                    {"name": "v21", "scaleIO": {}},
                    {"name": "v22", "csi": {}},
                ]
            },
            [
                "spec.volumes[0].hostPath.path: Required value",
                "spec.volumes[1].gitRepo.repository: Required value",
                "spec.volumes[2].persistentDisk.pdName: Required value",
                "spec.volumes[3].awsElasticBlockStore.volumeID: Required value",
                "spec.volumes[4].nfs.server: Required value",
                "spec.volumes[4].nfs.path: Required value",
                'spec.volumes[4].nfs.path: Invalid value: "": must be an absolute path',
                "spec.volumes[5].iscsi.targetPortal: Required value",
                "spec.volumes[5].iscsi.iqn: Required value",
                "spec.volumes[6].glusterfs.endpoints: Required value",
                "spec.volumes[6].glusterfs.path: Required value",
                ("spec.volumes[7].flocker: Required value: one of datasetName and datasetUUID is required"),
                "spec.volumes[8].persistentVolumeClaim.claimName: Required value",
                "spec.volumes[9].rbd.monitors: Required value",
                "spec.volumes[9].rbd.image: Required value",
                "spec.volumes[10].cinder.volumeID: Required value",
                "spec.volumes[11].cephfs.monitors: Required value",
                (
                    "spec.volumes[12].quobyte.registry: Required value: must be a host:port pair or "
                    "multiple pairs separated by commas"
                ),
                "spec.volumes[12].quobyte.volume: Required value",
                (
                    "spec.volumes[13].fc.targetWWNs: Required value: must specify either targetWWNs or "
                    "wwids, but not both"
                ),
                "spec.volumes[14].flexVolume.driver: Required value",
                "spec.volumes[15].azureFile.secretName: Required value",
                "spec.volumes[15].azureFile.shareName: Required value",
                "spec.volumes[16].vsphereVolume.volumePath: Required value",
                "spec.volumes[17].photonPersistentDisk.pdID: Required value",
                "spec.volumes[18].portworxVolume.volumeID: Required value",
                "spec.volumes[19].azureDisk.diskName: Required value",
                "spec.volumes[19].azureDisk.diskURI: Required value",
                (
                    'spec.volumes[19].azureDisk.diskURI: Unsupported value: "": supported values: '
                    '"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"'
                ),
                "spec.volumes[20].storageos.volumeName: Required value",
                "spec.volumes[21].scaleIO.gateway: Required value",
                "spec.volumes[21].scaleIO.system: Required value",
                "spec.volumes[21].scaleIO.volumeName: Required value",
                "spec.volumes[22].csi.driver: Required value",
            ],
            id="empty sources",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "hostPath": {"path": "/x/../y", "type": "Floppy"}}]},
            [
                "spec.volumes[0].hostPath.path: Invalid value: \"/x/../y\": must not contain '..'",
                (
                    'spec.volumes[0].hostPath.type: Unsupported value: "Floppy": supported values: "", '
                    '"BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", '
                    '"FileOrCreate", "Socket"'
                ),
            ],
            id="a host path with a parent segment and an unknown type",
        ),
        pytest.param(
            {
                "volumes": [
                    {"name": "a", "gcePersistentDisk": {"pdName": "x", "partition": 300}},
                    {"name": "b", "awsElasticBlockStore": {"volumeID": "x", "partition": -1}},
                ]
            },
            [
                ("spec.volumes[0].persistentDisk.partition: Invalid value: 300: must be between 1 and 255, inclusive"),
                (
                    "spec.volumes[1].awsElasticBlockStore.partition: Invalid value: -1: must be between 1 "
                    "and 255, inclusive"
                ),
            ],
            id="partitions out of range",
        ),
        pytest.param(
            {
                "volumes": [
                    {"name": "a", "iscsi": {"targetPortal": "a", "iqn": "foo", "lun": 300}},
                    {
                        "name": "b",
                        "iscsi": {
                            "targetPortal": "a",
                            "iqn": "iqn.x",
                            "lun": 1,
                            "chapAuthSession": True,
                            "initiatorName": "zzz",
                        },
                    },
                ]
            },
            [
                (
                    'spec.volumes[0].iscsi.iqn: Invalid value: "foo": must be valid format starting with '
                    "iqn, eui, or naa"
                ),
                "spec.volumes[0].iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive",
                'spec.volumes[1].iscsi.iqn: Invalid value: "iqn.x": must be valid format',
                "spec.volumes[1].iscsi.secretRef: Required value",
                (
                    'spec.volumes[1].iscsi.initiatorname: Invalid value: "zzz": must be valid format '
                    "starting with iqn, eui, or naa"
                ),
            ],
            id="invalid iscsi names",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "csi": {"driver": "A_b", "nodePublishSecretRef": {"name": "A"}}}]},
            [
                (
                    'spec.volumes[0].csi.driver: Invalid value: "A_b": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and end "
                    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
                (
                    'spec.volumes[0].csi.name: Invalid value: "A": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and end "
                    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
            ],
            id="an invalid driver",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "csi": {"driver": "CSI.example.com"}}]}, [], id="a driver in capitals is allowed"
        ),
        pytest.param(
            {"volumes": [{"name": "v", "fc": {"targetWWNs": ["a"], "wwids": ["b"], "lun": 300}}]},
            [
                (
                    'spec.volumes[0].fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be '
                    "specified simultaneously"
                ),
                "spec.volumes[0].fc.lun: Invalid value: 300: must be between 0 and 255, inclusive",
            ],
            id="fibre channel with targetWWNs and wwids",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "flexVolume": {"driver": "d", "options": {"kubernetes.io/x": "y"}}}]},
            [
                (
                    "spec.volumes[0].flexVolume.options[kubernetes.io/x]: Invalid value: "
                    '"kubernetes.io/x": kubernetes.io and k8s.io namespaces are reserved'
                )
            ],
            id="a reserved option",
        ),
        pytest.param(
            {
                "volumes": [
                    {"name": "v", "azureDisk": {"diskName": "a", "diskURI": "b", "kind": "Managed", "cachingMode": "X"}}
                ]
            },
            [
                (
                    'spec.volumes[0].azureDisk.cachingMode: Unsupported value: "X": supported values: '
                    '"None", "ReadOnly", "ReadWrite"'
                ),
                (
                    'spec.volumes[0].azureDisk.diskURI: Unsupported value: "b": supported values: '
                    '"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks'
                    '/{disk-id}"'
                ),
            ],
            id="a managed disk with an invalid URI",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "flocker": {"datasetName": "a/b", "datasetUUID": "c"}}]},
            [
                (
                    'spec.volumes[0].flocker: Invalid value: "resource": datasetName and datasetUUID can '
                    "not be specified simultaneously"
                ),
                "spec.volumes[0].flocker.datasetName: Invalid value: \"a/b\": must not contain '/'",
            ],
            id="flocker with datasetName and datasetUUID",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "quobyte": {"registry": "a", "volume": "b"}}]},
            [
                (
                    'spec.volumes[0].quobyte.registry: Invalid value: "a": must be a host:port pair or '
                    "multiple pairs separated by commas"
                )
            ],
            id="a registry without a port",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "storageos": {"volumeName": "A", "secretRef": {}}}]},
            [
                (
                    'spec.volumes[0].storageos.volumeName: Invalid value: "A": a lowercase RFC 1123 label '
                    "must consist of lower case alphanumeric characters or '-', and must start and end "
                    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
                    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                ),
                "spec.volumes[0].storageos.secretRef.name: Required value",
            ],
            id="a name that is no label",
        ),
    ],
)
def test_volume_sources_of_pods_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors


IQN = "iqn.2001-04.com.example:storage.disk"
SECOND = "Forbidden: may not specify more than 1 volume type"


@pytest.mark.parametrize(
    ("spec", "errors"),
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
            id="a path with a parent segment",
        ),
        pytest.param(
            {"nfs": {"server": "a", "path": "/b"}, "cephfs": {}, "csi": {}},
            [f"s.cephFS: {SECOND}", f"s.csi: {SECOND}"],
            id="three sources",
        ),
        pytest.param(
            {"hostPath": {"path": "/a"}, "flexVolume": {"driver": "d"}}, [], id="a flex volume as a second source"
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
            id="datasetName and datasetUUID",
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
            id="an invalid target",
        ),
        pytest.param(
            {"fc": {"targetWWNs": ["a"], "wwids": ["b"]}},
            [
                's.fc.targetWWNs: Invalid value: ["a"]: targetWWNs and wwids can not be specified simultaneously',
                "s.fc.lun: Required value: lun is required if targetWWNs is specified",
            ],
            id="targetWWNs and wwids",
        ),
        pytest.param(
            {"flexVolume": {"driver": "d", "options": {"x.K8s.io/a": "b", "mine": "c"}}},
            [
                's.flexVolume.options[x.K8s.io/a]: Invalid value: "x.K8s.io/a": kubernetes.io and k8s.io namespaces '
                "are reserved"
            ],
            id="reserved options",
        ),
        pytest.param(
            {"azureDisk": {"diskName": "a", "diskURI": "b", "kind": "Managed", "cachingMode": "None"}},
            [
                's.azureDisk.diskURI: Unsupported value: "b": supported values: "/subscriptions/{sub-id}/'
                'resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"'
            ],
            id="a managed disk with an invalid URI",
        ),
        pytest.param(
            {"local": {"path": "/a"}},
            ["s.nodeAffinity: Required value: Local volume requires node affinity"],
            id="a local volume without node affinity",
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
        pytest.param({"csi": {"driver": "My.Driver", "volumeHandle": "h"}}, [], id="a driver name in upper case"),
    ],
)
def test_volume_sources_of_persistent_volumes_are_validated(spec: Document, errors: list[str]) -> None:
    assert messages(validate_sources(spec, "v", "s", has_affinity=False)) == errors


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
def test_empty_volume_sources_lack_required_fields(source: str, fields: list[str]) -> None:
    errors = messages(validate_sources({source: {}}, "v", "s", has_affinity=False))
    assert errors == [f"s.{source}.{field}: Required value" for field in fields]
