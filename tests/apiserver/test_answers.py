"""Regression tests of responses that differed from kube-apiserver v1.36.4 for random objects."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    EVENT,
    JOB,
    POD,
    REPLICATION_CONTROLLER,
    SERVICE,
    VOLUME_ATTACHMENT,
    Kind,
)
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.errors import InvalidError
from mooring.client.interface import PatchForm
from tests.api_servers import with_api_server
from tests.client.objects import read

NS = "default"
Body = dict[str, Any]
CONTAINER = {"name": "c", "image": "registry.example/app:1"}


def definition(schema: Body) -> Body:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "things.example.com"}, "spec": spec}


def created(kind: Kind, body: Body) -> Body:
    found: list[Body] = []

    async def scenario(_: ApiServer, client: LoopbackClient) -> None:
        found.append(read(await client.create(kind, NS if kind.is_namespaced else "", body)))

    with_api_server(scenario)
    return found[0]


def rejection(kind: Kind, body: Body, form: PatchForm | None = None) -> str:
    """The error message of a create request or, with a form, of a patch request."""
    found: list[str] = []

    async def scenario(_: ApiServer, client: LoopbackClient) -> None:
        namespace = NS if kind.is_namespaced else ""
        with pytest.raises(InvalidError) as error:
            if form is None:
                await client.create(kind, namespace, body)
            else:
                await client.patch(kind, namespace, body["metadata"]["name"], body, form=form)
        found.append(str(error.value))

    with_api_server(scenario)
    return found[0]


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        pytest.param(
            CONFIG_MAP,
            {
                "metadata": {
                    "name": "a",
                    "ownerReferences": [{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}],
                }
            },
            'metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty',
            id="the API version of an owner has at most one slash",
        ),
        pytest.param(
            EVENT,
            {
                "metadata": {"name": "a", "finalizers": ["plain"]},
                "eventTime": "2026-01-01T00:00:00.000001Z",
                "reportingController": "c",
                "reportingInstance": "i",
                "action": "a",
                "reason": "r",
                "type": "Normal",
                "regarding": {"kind": "Pod", "namespace": NS, "name": "p"},
            },
            'metadata.finalizers[0]: Invalid value: "plain": name is neither a standard finalizer name nor is it fully '
            "qualified",
            id="finalizers of an event have a domain",
        ),
        pytest.param(
            REPLICATION_CONTROLLER,
            {
                "metadata": {"name": "a"},
                "spec": {
                    "selector": {"app": "x"},
                    "template": {"metadata": {"labels": {"b": "1", "a": "2"}}, "spec": {"containers": [CONTAINER]}},
                },
            },
            'spec.template.metadata.labels: Invalid value: {"a":"2","b":"1"}: '
            "`selector` does not match template `labels`",
            id="labels are printed in order",
        ),
        *(
            pytest.param(
                CUSTOM_RESOURCE_DEFINITION,
                definition({"type": "object", "properties": {"spec": {"type": "object", field: {}}}}),
                f"spec.validation.openAPIV3Schema.properties[spec].{field}: Forbidden: {field} is not supported",
                id=f"an empty {field}",
            )
            for field in ("additionalItems", "dependencies")
        ),
    ],
)
def test_an_invalid_object_is_rejected(kind: Kind, body: Body, message: str) -> None:
    assert message in rejection(kind, body)


def test_an_image_name_longer_than_255_characters_gets_the_pull_policy_if_not_present() -> None:
    spec = {"containers": [{"name": "long", "image": "x" * 256}, {"name": "short", "image": "x" * 255}]}
    containers = created(POD, {"metadata": {"name": "p"}, "spec": spec})["spec"]["containers"]
    assert [container["imagePullPolicy"] for container in containers] == ["IfNotPresent", "Always"]


def test_a_given_quality_of_service_class_is_stored() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}, "status": {"qosClass": "Guaranteed"}}
    assert created(POD, pod)["status"]["qosClass"] == "Guaranteed"


def test_an_inline_volume_may_name_an_attributes_class_without_a_driver() -> None:
    inline = {
        "volumeAttributesClassName": "*",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "gcePersistentDisk": {"pdName": "d"},
    }
    source = {"inlineVolumeSpec": inline}
    body = {"metadata": {"name": "a"}, "spec": {"attacher": "csi.example.com", "nodeName": "n", "source": source}}
    assert "volumeAttributesClassName" not in rejection(VOLUME_ATTACHMENT, body)


def test_fields_next_to_empty_template_labels_are_managed() -> None:
    template = {
        "metadata": {"labels": {}, "annotations": {"a": "b"}},
        "spec": {"containers": [CONTAINER], "restartPolicy": "Never"},
    }
    job = created(JOB, {"metadata": {"name": "j"}, "spec": {"template": template}})
    fields = job["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:template"]["f:metadata"]
    assert fields == {"f:annotations": {".": {}, "f:a": {}}}


def test_an_applied_integer_beyond_32_bits_overflows() -> None:
    spec = {"ports": [{"name": "http", "port": 2**31}]}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
    message = "spec.ports[0].port: Invalid value: -2147483648: must be between 1 and 65535, inclusive"
    assert message in rejection(SERVICE, body, PatchForm.APPLY)
