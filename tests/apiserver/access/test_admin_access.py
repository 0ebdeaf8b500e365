"""Admin access to devices needs a labelled namespace; each part of a claim's status needs its own permission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, Kind
from mooring.apiserver.access.admin_access import AdminAccessCheck
from mooring.apiserver.access.authorization import Attributes, SubjectRules
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.call import Call, Operation
from mooring.serving.authorization import AuthorizationDecision
from mooring.serving.users import NODE_NAME_KEY, User
from tests.apiserver.admission.builders import wait
from tests.apiserver.core_documents import messages

NOT_ADMIN = (
    "Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the "
    "containing namespace"
)
RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
ON_NODE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}


class Namespaces:
    """A lookup that returns one namespace with the given labels."""

    def __init__(self, **labels: str) -> None:
        self._labels = {key.replace("_", "/"): value for key, value in labels.items()}

    async def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        return {"metadata": {"name": name, "labels": self._labels}}

    async def labels(self, kind: Kind, namespace: str, name: str) -> Mapping[str, str] | None:
        return self._labels

    async def list(self, kind: Kind, namespace: str = "") -> Sequence[Document]:
        return []


class Allowing:
    """Authorizer that allows the given pairs `verb subresource`."""

    def __init__(self, *rights: str) -> None:
        self.rights = rights

    def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        return AuthorizationDecision(f"{attributes.verb} {attributes.subresource}" in self.rights)

    def rules_for(self, user: User, namespace: str) -> SubjectRules:
        return SubjectRules(())


def guarded(
    kind: Kind, obj: Document, old: Document | None = None, rights: Sequence[str] = (), user: User | None = None
) -> list[str]:
    operation = Operation.CREATE if old is None else Operation.UPDATE
    call = Call("patch", kind, user or User("anna"), 0.0, "", "web", subresource="" if old is None else "status")
    wait(AdminAccessCheck(Allowing(*rights)).admit(Attempt(operation, call, obj, old), Namespaces()))
    return messages(call.prior_errors)


def test_admin_access_without_the_namespace_label_is_forbidden() -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"adminAccess": True}}]}}
    expected = [f"spec.devices.requests[0].adminAccess: {NOT_ADMIN}"]
    assert guarded(RESOURCE_CLAIM, {"spec": spec}) == expected
    assert guarded(RESOURCE_CLAIM_TEMPLATE, {"spec": {"spec": spec}}) == expected
    assert guarded(RESOURCE_CLAIM, {"spec": {"devices": {"requests": [{"name": "r"}]}}}) == []


def test_admin_access_in_a_labelled_namespace_is_allowed() -> None:
    call = Call("create", RESOURCE_CLAIM, User("anna"), 0.0, "", "web")
    obj = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"adminAccess": True}}]}}}
    marked = Namespaces(**{"resource.kubernetes.io_admin-access": "true"})
    wait(AdminAccessCheck(Allowing()).admit(Attempt(Operation.CREATE, call, obj, None), marked))
    assert call.prior_errors == []


@pytest.mark.parametrize(
    ("status", "old", "rights", "fields"),
    [
        pytest.param({}, {}, [], [], id="nothing changes"),
        pytest.param({"reservedFor": [{}]}, {}, [], ["status.allocation"], id="reservedFor without permission to bind"),
        pytest.param({"reservedFor": [{}]}, {}, ["patch binding"], [], id="reservedFor with permission to bind"),
        pytest.param(
            {"allocation": {"devices": {"results": [{**RESULT, "adminAccess": True}]}}},
            {},
            ["patch binding"],
            ["status.allocation.devices.results[0].adminAccess"],
            id="results with admin access need the namespace label",
        ),
    ],
)
def test_status_allocation_needs_permission_to_bind(
    status: Document, old: Document, rights: list[str], fields: list[str]
) -> None:
    errors = guarded(RESOURCE_CLAIM, {"status": status}, {"status": old}, rights)
    assert [error.partition(": ")[0] for error in errors] == fields


def reported(node: Document | None = None, **device: Any) -> Document:
    allocation: Document = {"devices": {"results": [RESULT]}}
    if node is not None:
        allocation["nodeSelector"] = node
    return {"status": {"allocation": allocation, "devices": [{**RESULT, **device}] if device else []}}


@pytest.mark.parametrize(
    ("rights", "node", "is_allowed"),
    [
        pytest.param([], None, False, id="no permission"),
        pytest.param(["arbitrary-node:patch driver"], None, True, id="arbitrary-node"),
        pytest.param(["associated-node:patch driver"], None, False, id="associated-node, allocation on another node"),
        pytest.param(["associated-node:patch driver"], ON_NODE, True, id="associated-node, allocation on that node"),
    ],
)
def test_status_devices_needs_permission_of_the_driver(
    rights: list[str], node: Document | None, is_allowed: bool
) -> None:
    user = User("system:serviceaccount:web:driver", extra={NODE_NAME_KEY: ("n",)})
    errors = guarded(RESOURCE_CLAIM, reported(node, data={"a": 1}), reported(node), rights, user)
    assert (errors == []) is is_allowed
    gone = guarded(RESOURCE_CLAIM, reported(node), reported(node, data={"a": 1}), rights, user)
    assert (gone == []) is is_allowed


def test_the_error_for_a_driver_without_permission_names_the_verb() -> None:
    (error,) = guarded(RESOURCE_CLAIM, reported(data={"a": 1}), reported())
    assert error == (
        'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", '
        'verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "d" is forbidden: '
        'User "anna" cannot arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" '
        'in the namespace "web"'
    )


def test_only_the_status_of_resource_claims_is_checked_on_update() -> None:
    guard = AdminAccessCheck(Allowing())
    assert guard.handles(RESOURCE_CLAIM, "status", Operation.UPDATE)
    assert not guard.handles(RESOURCE_CLAIM, "", Operation.UPDATE)
    assert not guard.handles(POD, "", Operation.CREATE)
