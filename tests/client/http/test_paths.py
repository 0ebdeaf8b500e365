"""Every object has one address, and no name leads elsewhere."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CLUSTER_ROLE, NAMESPACE, NODE, POD, REPLICA_SET, Kind
from mooring.client.errors import BadRequestError
from mooring.client.http.client import binding_path, collection_path, creation_path, object_path, with_query
from mooring.client.interface import EVERYTHING, Selection


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(collection_path(POD, ""), "/api/v1/pods", id="all pods"),
        pytest.param(collection_path(POD, "a"), "/api/v1/namespaces/a/pods", id="the pods of a namespace"),
        pytest.param(collection_path(NODE, "a"), "/api/v1/nodes", id="nodes live in no namespace"),
        pytest.param(collection_path(REPLICA_SET, "a"), "/apis/apps/v1/namespaces/a/replicasets", id="of a group"),
        pytest.param(object_path(NAMESPACE, "", "a"), "/api/v1/namespaces/a", id="a namespace itself"),
        pytest.param(object_path(POD, "a", "b", "status"), "/api/v1/namespaces/a/pods/b/status", id="a part"),
        pytest.param(
            object_path(CLUSTER_ROLE, "", "system:kube ü?"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube%20%C3%BC%3F",
            id="a name with other letters",
        ),
        pytest.param(binding_path("a", "b"), "/api/v1/namespaces/a/pods/b/binding", id="a binding"),
        pytest.param(creation_path(POD, "a"), "/api/v1/namespaces/a/pods", id="where pods are made"),
        pytest.param(with_query("/p", EVERYTHING, {"limit": 0, "continue": ""}), "/p", id="nothing in the query"),
        pytest.param(
            with_query("/p", Selection("", "a=b", "c!=d"), {"limit": 5}),
            "/p?labelSelector=a%3Db&fieldSelector=c%21%3Dd&limit=5",
            id="a query",
        ),
    ],
)
def test_addresses(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "words"),
    [
        pytest.param(POD, "a", "", "resource name may not be empty", id="no name"),
        pytest.param(POD, "", "b", "an empty namespace may not be set", id="no namespace"),
        pytest.param(POD, "a", "..", "invalid resource name '..'", id="a step back"),
        pytest.param(POD, "a", "b/binding", "invalid resource name", id="two steps"),
        pytest.param(POD, "a%2fb", "c", "invalid namespace", id="an escape"),
    ],
)
def test_names_that_lead_elsewhere(kind: Kind, namespace: str, name: str, words: str) -> None:
    with pytest.raises(BadRequestError, match=words):
        object_path(kind, namespace, name)


def test_nothing_is_created_nowhere() -> None:
    with pytest.raises(BadRequestError, match="during creation"):
        creation_path(POD, "")
