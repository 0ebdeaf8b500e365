"""In-tree volumes as volumes of CSI drivers: driver, handle, topology."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mooring.api.csi_translation import (
    AWS_EBS,
    AZURE_DISK,
    AZURE_FILE,
    BETA_REGION_LABEL,
    BETA_ZONE_LABEL,
    CINDER,
    DRIVERS,
    GCE_PD,
    MIGRATED,
    PORTWORX,
    REGION_LABEL,
    VSPHERE,
    ZONE_LABEL,
    TranslationError,
    plugin_of,
    translate_inline,
    translate_volume,
)
from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from mooring.api.views.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    PersistentVolume,
    PersistentVolumeSpec,
    PortworxVolumeSource,
    RBDVolumeSource,
    Volume,
    VolumeNodeAffinity,
    VsphereVirtualDiskVolumeSource,
)
from tests.storage_builders import from_nodes, volume

EBS_ZONE = "topology.ebs.csi.aws.com/zone"
GCE_ZONE = "topology.gke.io/zone"


@pytest.mark.parametrize(
    ("source", "plugin"),
    [
        pytest.param(Volume(gce_persistent_disk=GCEPersistentDiskVolumeSource()), GCE_PD, id="a Google disk"),
        pytest.param(Volume(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource()), AWS_EBS, id="an Amazon disk"),
        pytest.param(Volume(cinder=CinderVolumeSource()), CINDER, id="an OpenStack disk"),
        pytest.param(Volume(azure_disk=AzureDiskVolumeSource()), AZURE_DISK, id="an Azure disk"),
        pytest.param(PersistentVolumeSpec(azure_file=AzureFileVolumeSource()), AZURE_FILE, id="an Azure share"),
        pytest.param(Volume(vsphere_volume=VsphereVirtualDiskVolumeSource()), VSPHERE, id="a vSphere disk"),
        pytest.param(Volume(portworx_volume=PortworxVolumeSource()), PORTWORX, id="a Portworx volume"),
        pytest.param(Volume(rbd=RBDVolumeSource()), None, id="a Ceph image has no successor"),
        pytest.param(Volume(name="config"), None, id="a config map is no disk"),
    ],
)
def test_the_plugin_of_a_volume(source: PersistentVolumeSpec | Volume, plugin: str | None) -> None:
    assert plugin_of(source) == plugin


def test_every_migrated_plugin_has_a_driver() -> None:
    assert set(DRIVERS) > MIGRATED


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        pytest.param(
            Volume(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id="vol-1")),
            "ebs.csi.aws.com",
            "vol-1",
            id="a bare Amazon id",
        ),
        pytest.param(
            Volume(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id="aws://eu-west-1a/vol-1")),
            "ebs.csi.aws.com",
            "vol-1",
            id="an Amazon address with a zone",
        ),
        pytest.param(
            Volume(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id="aws:///vol-1")),
            "ebs.csi.aws.com",
            "vol-1",
            id="an Amazon address without a zone",
        ),
        pytest.param(
            Volume(gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name="d")),
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="a Google disk lies nobody knows where",
        ),
        pytest.param(
            Volume(azure_disk=AzureDiskVolumeSource(disk_uri="/subscriptions/s/d", kind="Managed")),
            "disk.csi.azure.com",
            "/subscriptions/s/d",
            id="a managed Azure disk",
        ),
        pytest.param(
            Volume(cinder=CinderVolumeSource(volume_id="c")), "cinder.csi.openstack.org", "c", id="an OpenStack disk"
        ),
        pytest.param(
            Volume(portworx_volume=PortworxVolumeSource(volume_id="p")), "pxd.portworx.com", "p", id="Portworx"
        ),
    ],
)
def test_the_handle_of_an_inline_volume(source: Volume, driver: str, handle: str) -> None:
    translated = translate_inline(source)
    assert (translated.driver, translated.handle, translated.node_selector) == (driver, handle, None)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param(
            Volume(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id="aws://a/disk-1")),
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://a/disk-1)",
            id="an Amazon id that is none",
        ),
        pytest.param(
            Volume(azure_disk=AzureDiskVolumeSource(disk_uri="u", kind="Dedicated")),
            "kind(Dedicated) is not supported in csi migration",
            id="an Azure disk that is not managed",
        ),
        pytest.param(
            Volume(name="v", vsphere_volume=VsphereVirtualDiskVolumeSource()),
            'could not find in-tree plugin translation logic for "v"',
            id="a plugin that the scheduler does not translate",
        ),
    ],
)
def test_volumes_that_cannot_be_translated_have_a_reason(source: Volume, text: str) -> None:
    with pytest.raises(TranslationError) as caught:
        translate_inline(source)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        pytest.param({}, "zones/UNSPECIFIED", id="no label"),
        pytest.param({ZONE_LABEL: "europe-west1-b"}, "zones/europe-west1-b", id="a zone"),
        pytest.param(
            {BETA_ZONE_LABEL: "a-b-c", ZONE_LABEL: "x-y-z"}, "zones/a-b-c", id="the beta label is looked at first"
        ),
        pytest.param(
            {ZONE_LABEL: "europe-west1-b__europe-west1-c"}, "regions/europe-west1", id="two zones make a region"
        ),
    ],
)
def test_the_handle_of_a_google_disk_has_its_zone_or_region(labels: Mapping[str, str], place: str) -> None:
    assert translate_volume(volume("v", gce="d", labels=labels)).handle == f"projects/UNSPECIFIED/{place}/disks/d"


@pytest.mark.parametrize(
    ("zones", "text"),
    [
        pytest.param(
            "europe__b",
            "failed to get region from zones: zone in unexpected format, "
            "expected: {locale}-{region}-{zone}, got: europe",
            id="a zone that is none",
        ),
        pytest.param(
            "a-b-c__a-d-c",
            "failed to get region from zones: multiple or no regions gotten from zones, got: map[a-b:{} a-d:{}]",
            id="zones of two regions",
        ),
    ],
)
def test_a_google_disk_in_several_regions_has_no_handle(zones: str, text: str) -> None:
    with pytest.raises(TranslationError) as caught:
        translate_volume(volume("v", gce="d", labels={ZONE_LABEL: zones}))
    assert str(caught.value) == text


def _exists(key: str) -> NodeSelector:
    requirement = NodeSelectorRequirement(key=key, operator="Exists")
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))


def _and(selector: NodeSelector, key: str, *values: str) -> NodeSelector:
    more = NodeSelectorRequirement(key=key, operator="In", values=values)
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(match_expressions=(*term.match_expressions, more)) for term in selector.node_selector_terms
        )
    )


@pytest.mark.parametrize(
    ("labels", "affinity", "expected"),
    [
        pytest.param({}, None, None, id="a volume without topology stays without"),
        pytest.param({}, from_nodes(ZONE_LABEL, "a"), from_nodes(EBS_ZONE, "a"), id="the zone becomes the driver's"),
        pytest.param(
            {}, from_nodes(BETA_ZONE_LABEL, "a"), from_nodes(EBS_ZONE, "a"), id="so does the zone of the beta"
        ),
        pytest.param(
            {ZONE_LABEL: "b"}, from_nodes(ZONE_LABEL, "a"), from_nodes(EBS_ZONE, "a"), id="affinity beats labels"
        ),
        pytest.param({ZONE_LABEL: "b__a"}, None, from_nodes(EBS_ZONE, "a", "b"), id="labels become an affinity"),
        pytest.param({ZONE_LABEL: "__ "}, None, None, id="a label without any zone adds nothing"),
        pytest.param(
            {ZONE_LABEL: "b"},
            from_nodes("disk", "ssd"),
            _and(from_nodes("disk", "ssd"), EBS_ZONE, "b"),
            id="labels narrow an affinity about something else",
        ),
        pytest.param(
            {ZONE_LABEL: "b"},
            _exists(ZONE_LABEL),
            _and(_exists(ZONE_LABEL), EBS_ZONE, "b"),
            id="an affinity that only wants some zone leaves the zone to the labels",
        ),
        pytest.param(
            {},
            _and(from_nodes(BETA_ZONE_LABEL, "a"), BETA_REGION_LABEL, "r"),
            _and(from_nodes(EBS_ZONE, "a"), REGION_LABEL, "r"),
            id="the beta region becomes that of today",
        ),
        pytest.param(
            {},
            _and(from_nodes(ZONE_LABEL, "a"), BETA_REGION_LABEL, "r"),
            _and(from_nodes(EBS_ZONE, "a"), BETA_REGION_LABEL, "r"),
            id="but not beside a zone of today",
        ),
    ],
)
def test_the_topology_of_a_volume_is_translated(
    labels: Mapping[str, str], affinity: NodeSelector | None, expected: NodeSelector | None
) -> None:
    translated = translate_volume(volume("v", ebs="vol-1", labels=labels, reached=affinity))
    assert translated.node_selector == expected


def test_each_driver_has_its_own_zone_label() -> None:
    assert translate_volume(volume("v", gce="d", reached=from_nodes(ZONE_LABEL, "a"))).node_selector == from_nodes(
        GCE_ZONE, "a"
    )


def test_an_azure_disk_keeps_its_topology() -> None:
    azure = PersistentVolume(
        metadata=ObjectMeta(name="v", labels={ZONE_LABEL: "b"}),
        spec=PersistentVolumeSpec(
            azure_disk=AzureDiskVolumeSource(disk_uri="u"),
            node_affinity=VolumeNodeAffinity(required=from_nodes(ZONE_LABEL, "a")),
        ),
    )
    assert translate_volume(azure).node_selector == from_nodes(ZONE_LABEL, "a")
