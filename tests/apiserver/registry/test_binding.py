"""The binding subresource of pods and the bindings resource assign a pod to a node."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.apiserver.admission.pod_topology_labels import PodTopologyLabels
from mooring.apiserver.registry.binding import BINDING, bind
from mooring.client.errors import BadRequestError, ConflictError, NotFoundError, ServerError, StatusError
from mooring.kit.loop import run
from tests.apiserver.registry.fixture import NOW, NS, RegistryFixture, call

SCHEDULED = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": NOW}
ZONE = "topology.kubernetes.io/zone"


def binding(name: str = "p", target: Any = None, **metadata: Any) -> Document:
    return {
        "metadata": {"name": name, **metadata},
        "target": target if target is not None else {"kind": "Node", "name": "n"},
    }


def bound(
    body: Document,
    *,
    spec: Any = None,
    metadata: Any = None,
    is_dry_run: bool = False,
    uses_bindings_resource: bool = False,
) -> Document:
    """The pod after a binding."""

    async def main() -> Document:
        api_server = RegistryFixture([PodTopologyLabels()])
        await api_server.put(NODE, "zoned", {"labels": {ZONE: "z"}})
        await api_server.put(POD, "p", metadata, spec={"containers": [], **(spec or {})}, status={"phase": "Pending"})
        api_call = call(BINDING, "") if uses_bindings_resource else call(POD, "p", "binding", is_dry_run=is_dry_run)
        await bind(api_server.context, api_call, body)
        return await api_server.get(POD, "p")

    return run(main())


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({}, id="no preconditions"),
        pytest.param({"uid": "uid-p"}, id="uid"),
        pytest.param({"uid": "uid-p", "resourceVersion": "3"}, id="uid and resourceVersion"),
        pytest.param({"annotations": {"a": "b"}}, id="with annotations"),
    ],
)
def test_binding_sets_the_node_name_and_the_pod_scheduled_condition(metadata: Any) -> None:
    pod = bound(binding(**metadata), spec={"nodeSelector": {"a": "b"}})
    assert pod["spec"] == {"containers": [], "nodeSelector": {"a": "b"}, "nodeName": "n"}
    assert pod["status"] == {"phase": "Pending", "conditions": [SCHEDULED]}
    assert pod["metadata"].get("annotations") == metadata.get("annotations")
    assert "managedFields" not in pod["metadata"]


def test_binding_adds_labels_from_the_binding_and_from_admission() -> None:
    body = binding(target={"kind": "Node", "name": "zoned"}, labels={"l": "new"})
    pod = bound(body, metadata={"labels": {"l": "old", "m": "kept", ZONE: "mine"}})
    assert pod["metadata"]["labels"] == {"l": "new", "m": "kept", ZONE: "z"}


def test_a_binding_through_the_bindings_resource_adds_no_labels() -> None:
    pod = bound(binding(target={"kind": "Node", "name": "zoned"}), uses_bindings_resource=True)
    assert (pod["spec"]["nodeName"], pod["metadata"].get("labels")) == ("zoned", None)


def test_a_dry_run_writes_nothing() -> None:
    assert "nodeName" not in bound(binding(), is_dry_run=True)["spec"]


def refusal(body: Document, **where: Any) -> StatusError:
    with pytest.raises(StatusError) as caught:
        bound(body, **where)
    return caught.value


@pytest.mark.parametrize(
    ("where", "why"),
    [
        pytest.param({"spec": {"nodeName": "m"}}, 'pod p is already assigned to node "m"', id="bound"),
        pytest.param(
            {"spec": {"schedulingGates": [{"name": "g"}]}}, "pod p has non-empty .spec.schedulingGates", id="gated"
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": NOW}},
            "pod p is being deleted, cannot be assigned to a host",
            id="terminating",
        ),
    ],
)
@pytest.mark.parametrize("metadata", [{}, {"labels": {"a": "b"}}], ids=["plain", "with labels"])
def test_binding_a_bound_gated_or_terminating_pod_is_a_conflict(where: Any, why: str, metadata: Any) -> None:
    error = refusal(binding(**metadata), **where)
    assert isinstance(error, ConflictError)
    assert error.message == f'Operation cannot be fulfilled on pods/binding "p": {why}'
    assert error.details == {"name": "p", "kind": "pods/binding"}


@pytest.mark.parametrize(
    ("metadata", "is_dry_run", "key", "failed"),
    [
        pytest.param(
            {"uid": "x"}, False, "/registry/pods", "UID in precondition: x, UID in object meta: uid-p", id="uid"
        ),
        pytest.param(
            {"uid": "x", "resourceVersion": "1"},
            False,
            "/registry/pods",
            "UID in precondition: x, UID in object meta: uid-p",
            id="uid is checked before resourceVersion",
        ),
        pytest.param(
            {"resourceVersion": "1"},
            False,
            "/registry/pods",
            "ResourceVersion in precondition: 1, ResourceVersion in object meta: 3",
            id="resourceVersion",
        ),
        pytest.param({"uid": "x"}, True, "/pods", "UID in precondition: x, UID in object meta: uid-p", id="a dry run"),
    ],
)
def test_a_binding_with_another_uid_or_resource_version_is_a_conflict(
    metadata: Any, is_dry_run: bool, key: str, failed: str
) -> None:
    assert refusal(binding(**metadata), is_dry_run=is_dry_run).message == (
        f'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: {key}/{NS}/p, '
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {failed}"
    )


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        pytest.param(
            binding("q"), BadRequestError, "name in URL does not match name in Binding object", id="another name"
        ),
        pytest.param(
            binding(namespace="x"),
            BadRequestError,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace",
        ),
        pytest.param(
            binding(target={"kind": "Pod"}),
            ServerError,
            '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]',
            id="target is not a node",
        ),
    ],
)
def test_an_inconsistent_or_invalid_binding_is_rejected(body: Document, kind: type[StatusError], message: str) -> None:
    error = refusal(body)
    assert (type(error), error.message) == (kind, message)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        pytest.param(binding("nobody"), NotFoundError, 'pods "nobody" not found', id="no such pod"),
        pytest.param({"target": {"name": "n"}}, BadRequestError, "Name parameter required.", id="no name"),
    ],
)
def test_the_bindings_resource_finds_the_pod_by_the_name_in_the_binding(
    body: Document, kind: type[StatusError], message: str
) -> None:
    error = refusal(body, uses_bindings_resource=True)
    assert (type(error), error.message) == (kind, message)
