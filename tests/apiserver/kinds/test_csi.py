"""CSIDriver, CSINode, CSIStorageCapacity and VolumeAttachment: validation, updates, tables."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import CSI_DRIVER, CSI_NODE, CSI_STORAGE_CAPACITY, VOLUME_ATTACHMENT
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.csi_driver import validate_csi_driver, validate_csi_driver_update
from mooring.apiserver.kinds.csi_node import validate_csi_node, validate_csi_node_update
from mooring.apiserver.kinds.csi_storage_capacity import (
    has_bad_selector,
    validate_storage_capacity,
    validate_storage_capacity_update,
)
from mooring.apiserver.kinds.volume_attachment import (
    validate_volume_attachment,
    validate_volume_attachment_update,
)
from mooring.apiserver.strategy import keep_metadata
from tests.apiserver.core_documents import call, changed, created, document, messages, strategy


def spec(**parts: Any) -> dict[str, Any]:
    made: dict[str, Any] = document(CSI_DRIVER, spec=parts)["spec"]
    return made


@pytest.mark.parametrize(
    ("parts", "errors"),
    [
        pytest.param({}, [], id="defaults"),
        pytest.param(
            {"fsGroupPolicy": "X"},
            ['spec.fsGroupPolicy: Unsupported value: "X": supported values: "File", "None", "ReadWriteOnceWithFSType"'],
            id="an unknown policy",
        ),
        pytest.param(
            {"volumeLifecycleModes": ["X"]},
            ['spec.volumeLifecycleModes: Unsupported value: "X": supported values: "Persistent", "Ephemeral"'],
            id="an unknown mode",
        ),
        pytest.param(
            {"tokenRequests": [{"audience": "a"}, {"audience": "a", "expirationSeconds": 1}]},
            ['spec.tokenRequests[1].audience: Duplicate value: "a"'],
            id="a duplicate audience",
        ),
        pytest.param(
            {
                "tokenRequests": [
                    {"audience": "", "expirationSeconds": 599},
                    {"audience": "b", "expirationSeconds": 2**33},
                ]
            },
            [
                "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: "
                "may not specify a duration less than 10 minutes",
                "spec.tokenRequests[1].expirationSeconds: Invalid value: 8589934592: "
                "may not specify a duration larger than 2^32 seconds",
            ],
            id="tokens with too short and too long expirations",
        ),
        pytest.param(
            {"nodeAllocatableUpdatePeriodSeconds": 9},
            ["spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds"],
            id="a short update period",
        ),
        pytest.param(
            {"serviceAccountTokenInSecrets": False},
            [
                "spec.serviceAccountTokenInSecrets: Invalid value: false: "
                "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            ],
            id="tokens in secrets without token requests",
        ),
    ],
)
def test_csi_drivers_are_validated(parts: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_csi_driver(spec(**parts), "spec")) == errors


def test_fields_of_csi_drivers_without_defaults_are_required() -> None:
    assert messages(validate_csi_driver({}, "spec")) == [
        f"spec.{field}: Required value"
        for field in ("attachedRequired", "podInfoOnMount", "storageCapacity", "seLinuxMount")
    ]


def test_immutable_fields_of_csi_drivers() -> None:
    assert validate_csi_driver_update(spec(podInfoOnMount=True), spec(), "spec") == []
    changed = spec(attachRequired=False, volumeLifecycleModes=["Ephemeral"])
    assert messages(validate_csi_driver_update(changed, spec(), "spec")) == [
        "spec.attachedRequired: Invalid value: false: field is immutable",
        'spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable',
    ]


TOKENS = {"tokenRequests": [{"audience": "a"}]}


def test_the_generation_of_a_csi_driver_is_set_by_the_first_change() -> None:
    made = document(CSI_DRIVER, spec={"preventPodSchedulingIfMissing": True})
    assert created(CSI_DRIVER, made) == []
    assert "preventPodSchedulingIfMissing" not in made["spec"]
    assert "generation" not in made["metadata"]
    errors, new = changed(CSI_DRIVER, made, spec={**made["spec"], "podInfoOnMount": True})
    assert (errors, new["metadata"]["generation"]) == ([], 1)


@pytest.mark.parametrize(
    ("spec", "is_warned"),
    [
        pytest.param({}, False, id="no tokens"),
        pytest.param(TOKENS, True, id="tokens in attributes"),
        pytest.param({**TOKENS, "serviceAccountTokenInSecrets": False}, False, id="an explicit choice"),
    ],
)
def test_tokens_in_volume_attributes_have_a_warning(spec: dict[str, object], is_warned: bool) -> None:
    made, kind_strategy = document(CSI_DRIVER, spec=spec), strategy(CSI_DRIVER)
    assert bool(kind_strategy.warnings_on_create(made, call(CSI_DRIVER))) is is_warned
    assert bool(kind_strategy.warnings_on_update(made, document(CSI_DRIVER, spec={}), call(CSI_DRIVER))) is is_warned
    assert kind_strategy.warnings_on_update(made, made, call(CSI_DRIVER)) == []


def test_csi_drivers_are_defaulted() -> None:
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
    strategy_of(CSI_DRIVER).default(again)
    assert again["spec"] == made["spec"]


def driver(**parts: Any) -> dict[str, Any]:
    return {"name": "d.example.com", "nodeID": "n", **parts}


@pytest.mark.parametrize(
    ("drivers", "errors"),
    [
        pytest.param([], [], id="a node without drivers"),
        pytest.param([driver(allocatable={"count": 0}, topologyKeys=["a/b"])], [], id="a driver"),
        pytest.param(
            [driver(name="", nodeID="")],
            ["spec.drivers[0].name: Required value", "spec.drivers[0].nodeID: Required value"],
            id="neither name nor node ID",
        ),
        pytest.param(
            [driver(nodeID="x" * 257)],
            [f'spec.drivers[0].nodeID: Invalid value: "{"x" * 257}": must be 256 characters or less'],
            id="a long node ID",
        ),
        pytest.param(
            [driver(), driver()], ['spec.drivers[1].name: Duplicate value: "d.example.com"'], id="a duplicate driver"
        ),
        pytest.param(
            [driver(allocatable={"count": -1})],
            ["spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"],
            id="a negative count",
        ),
        pytest.param(
            [driver(topologyKeys=["a", "a"])],
            ['spec.drivers[0]: Duplicate value: "a"'],
            id="duplicate topology keys",
        ),
    ],
)
def test_drivers_of_csi_nodes_are_validated(drivers: list[dict[str, Any]], errors: list[str]) -> None:
    assert messages(validate_csi_node({"drivers": drivers}, "spec")) == errors


@pytest.mark.parametrize(
    ("drivers", "is_allowed"),
    [
        pytest.param([driver(topologyKeys=None, allocatable={"count": 9})], True, id="another number of volumes"),
        pytest.param([], True, id="the driver is removed"),
        pytest.param([driver(name="e"), driver(topologyKeys=[])], True, id="a driver is added"),
        pytest.param([driver(nodeID="m")], False, id="another node ID"),
        pytest.param([driver(topologyKeys=["a"])], False, id="another topology"),
    ],
)
def test_updates_of_drivers_of_csi_nodes_are_validated(drivers: list[dict[str, Any]], is_allowed: bool) -> None:
    errors = validate_csi_node_update({"drivers": drivers}, {"drivers": [driver()]}, "spec")
    assert (errors == []) is is_allowed
    for error in errors:
        assert (error.field, error.detail) == ("spec.drivers", "field is immutable")
        assert '"NodeID":' in error.body


def test_drivers_of_csi_nodes_can_be_added_but_not_changed() -> None:
    made = document(CSI_NODE, spec={"drivers": []})
    assert created(CSI_NODE, made) == []
    errors, new = changed(CSI_NODE, made, spec={"drivers": [{"name": "a", "nodeID": "b"}]})
    assert errors == []
    errors, _ = changed(CSI_NODE, new, spec={"drivers": [{"name": "a", "nodeID": "c"}]})
    assert [error.partition(":")[0] for error in errors] == ["spec.drivers"]
    assert not strategy(CSI_NODE).allows_unconditional_update


INVALID_LABEL_VALUE = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}


@pytest.mark.parametrize(
    ("parts", "fields"),
    [
        pytest.param({"capacity": "0", "maximumVolumeSize": "-5Gi"}, [], id="a negative maximumVolumeSize"),
        pytest.param({"storageClassName": ""}, ["storageClassName"], id="no storage class"),
        pytest.param({"capacity": "-1"}, ["capacity"], id="a negative capacity"),
        pytest.param(
            {"nodeTopology": INVALID_LABEL_VALUE},
            ["nodeTopology.matchExpressions[0].values[0]"],
            id="an invalid label value",
        ),
    ],
)
def test_storage_capacities_are_validated(parts: dict[str, Any], fields: list[str]) -> None:
    assert [error.field for error in validate_storage_capacity({"storageClassName": "fast", **parts})] == fields


def test_invalid_label_values_can_be_tolerated() -> None:
    old = {"storageClassName": "fast", "nodeTopology": INVALID_LABEL_VALUE}
    assert has_bad_selector(old)
    assert validate_storage_capacity(old, tolerates_values=True) == []


def test_immutable_fields_of_storage_capacities() -> None:
    old = {"storageClassName": "fast", "capacity": "1"}
    assert validate_storage_capacity_update({**old, "capacity": "2"}, old) == []
    changed = {"storageClassName": "slow", "nodeTopology": {"matchLabels": {"b": "1", "a": "2"}}}
    assert messages(validate_storage_capacity_update(changed, old)) == [
        'nodeTopology: Invalid value: {"matchLabels":{"a":"2","b":"1"}}: field is immutable',
        'storageClassName: Invalid value: "slow": field is immutable',
    ]


def test_deprecated_labels_have_a_warning() -> None:
    topology = {
        "matchExpressions": [{"key": "beta.kubernetes.io/arch", "operator": "Exists"}],
        "matchLabels": {"beta.kubernetes.io/os": "linux"},
    }
    made = document(CSI_STORAGE_CAPACITY, storageClassName="fast", nodeTopology=topology)
    assert created(CSI_STORAGE_CAPACITY, made) == []
    assert strategy(CSI_STORAGE_CAPACITY).warnings_on_create(made, call(CSI_STORAGE_CAPACITY)) == [
        "nodeTopology.matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; "
        'use "kubernetes.io/arch" instead',
        'nodeTopology.matchLabels.beta.kubernetes.io/os: deprecated since v1.14; use "kubernetes.io/os" instead',
    ]
    assert changed(CSI_STORAGE_CAPACITY, made, capacity="1Gi")[0] == []
    assert changed(CSI_STORAGE_CAPACITY, made, storageClassName="slow")[0] == [
        'storageClassName: Invalid value: "slow": field is immutable'
    ]


INLINE = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "d.example.com", "volumeHandle": "h"}}
ONE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def attachment(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    whole_spec = {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}, **spec}
    return document(VOLUME_ATTACHMENT, spec=whole_spec, status=status or {})


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        pytest.param(attachment(), [], id="a volume by name"),
        pytest.param(attachment(source={"inlineVolumeSpec": INLINE}), [], id="an inline volume"),
        pytest.param(attachment(attacher=""), ["spec.attacher: Required value"], id="no attacher"),
        pytest.param(attachment(source={}), [f"spec.source: Required value: {ONE}"], id="no volume"),
        pytest.param(
            attachment(source={"persistentVolumeName": "pv", "inlineVolumeSpec": INLINE}),
            [f"spec.source: Forbidden: {ONE}"],
            id="two volumes",
        ),
        pytest.param(
            attachment({"attachError": {"message": "x" * 1025}, "detachError": {"errorCode": -1}}),
            [
                "status.attachError.message: Too long: may not be more than 262144 bytes",
                "status.detachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ],
            id="invalid errors",
        ),
        pytest.param(
            attachment({"attachmentMetadata": {"a": "x" * 262144}}),
            ["status.attachmentMetadata: Too long: may not be more than 262144 bytes"],
            id="too large attachment metadata",
        ),
    ],
)
def test_volume_attachments_are_validated(obj: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_volume_attachment(obj)) == errors


def test_an_empty_volume_name_is_rejected() -> None:
    first, second = validate_volume_attachment(attachment(source={"persistentVolumeName": ""}))
    assert first.message == (
        "spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName"
    )
    assert second.field == "spec.source.persistentVolumeName"


def test_the_spec_of_an_attachment_is_immutable() -> None:
    assert validate_volume_attachment_update(attachment({"attached": True}), attachment()) == []
    (error,) = validate_volume_attachment_update(attachment(nodeName="m"), attachment())
    assert (error.field, error.detail) == ("spec", "field is immutable")


SPEC = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}


def test_a_new_attachment_is_detached() -> None:
    made = document(VOLUME_ATTACHMENT, spec=SPEC, status={"attached": True})
    assert created(VOLUME_ATTACHMENT, made) == []
    assert made["status"] == {"attached": False}


def test_updates_and_status_updates_of_attachments_change_only_their_part() -> None:
    old = document(VOLUME_ATTACHMENT, spec=SPEC)
    errors, new = changed(VOLUME_ATTACHMENT, old, status={"attached": True})
    assert (errors, new["status"]) == ([], {"attached": False})
    parts = {"status": {"attached": True}, "spec": {**SPEC, "nodeName": "m"}}
    errors, new = changed(VOLUME_ATTACHMENT, old, "status", metadata={"labels": {"a": "b"}}, **parts)
    assert (errors, new["status"], new["spec"]) == ([], {"attached": True}, SPEC)
    assert "labels" not in new["metadata"]
    errors, _ = changed(VOLUME_ATTACHMENT, old, "status", status={"detachError": {"errorCode": -1}})
    assert [error.partition(":")[0] for error in errors] == ["status.detachError.errorCode"]
    assert strategy(VOLUME_ATTACHMENT, "status").ignored_fields == (("metadata",), ("spec",))


def test_keep_metadata_changes_only_managed_fields() -> None:
    old = {"metadata": {"name": "a", "labels": {"x": "y"}}}
    new = {"metadata": {"name": "a", "finalizers": ["b/c"], "managedFields": [{}]}}
    keep_metadata(new, old)
    assert new == {"metadata": {"name": "a", "labels": {"x": "y"}, "managedFields": [{}]}}


def test_an_inline_volume_gets_only_the_defaults_of_its_source() -> None:
    inline = {"hostPath": {"path": "/x"}, "capacity": {"storage": "1Gi"}}
    made = document(VOLUME_ATTACHMENT, spec={"source": {"inlineVolumeSpec": inline}})
    assert made["spec"]["source"]["inlineVolumeSpec"] == {**inline, "hostPath": {"path": "/x", "type": ""}}
