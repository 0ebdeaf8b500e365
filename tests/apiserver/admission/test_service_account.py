"""Pods speak as a service account."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD, SERVICE_ACCOUNT
from mooring.apiserver.admission.service_account import TOKEN_PATH, ServiceAccount
from mooring.client.errors import ForbiddenError
from mooring.kit.entropy import Entropy
from tests.apiserver.admission.builders import NS, Known, admitted, attempt, container, named, pod

DEFAULT = named("default", imagePullSecrets=[{"name": "registry"}])
SILENT = named("silent", automountServiceAccountToken=False)
KNOWN = Known({SERVICE_ACCOUNT: [DEFAULT, SILENT]})


def made(one: Document, known: Known = KNOWN) -> Document:
    spec: Document = admitted(ServiceAccount(Entropy(1)), attempt(POD, one), known)["spec"]
    return spec


def test_a_pod_that_names_none_speaks_as_default() -> None:
    spec = made(pod(initContainers=[container("i")]))
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    [volume] = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert [sorted(source) for source in volume["projected"]["sources"]] == [
        ["serviceAccountToken"],
        ["configMap"],
        ["downwardAPI"],
    ]
    mount = {"name": volume["name"], "readOnly": True, "mountPath": TOKEN_PATH}
    assert [one["volumeMounts"] for one in (*spec["containers"], *spec["initContainers"])] == [[mount], [mount]]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"automountServiceAccountToken": False}, id="the pod wants none"),
        pytest.param({"serviceAccountName": "silent"}, id="the account wants none"),
        pytest.param({"containers": [container(volumeMounts=[{"mountPath": TOKEN_PATH}])]}, id="its place is taken"),
    ],
)
def test_no_token_is_mounted_if(given: dict[str, Any]) -> None:
    assert "volumes" not in made(pod(**given))


def test_own_secrets_are_kept() -> None:
    assert made(pod(imagePullSecrets=[{"name": "mine"}]))["imagePullSecrets"] == [{"name": "mine"}]


def mirror(**spec: Any) -> Document:
    one = pod(**spec)
    one["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    return one


def test_a_mirror_is_not_changed() -> None:
    assert made(mirror()) == pod()["spec"]


@pytest.mark.parametrize(
    ("one", "why"),
    [
        pytest.param(
            pod(serviceAccountName="none"),
            f'error looking up service account {NS}/none: serviceaccount "none" not found',
            id="no such account",
        ),
        pytest.param(
            mirror(serviceAccountName="a"), "a mirror pod may not reference service accounts", id="a mirror with one"
        ),
        pytest.param(
            mirror(volumes=[{"name": "v", "secret": {}}]),
            "a mirror pod may not reference secrets",
            id="a mirror with a secret",
        ),
        pytest.param(
            mirror(volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}}]),
            "a mirror pod may not use ServiceAccountToken volume projections",
            id="a mirror with a token",
        ),
    ],
)
def test_refused(one: Document, why: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        made(one)
    assert caught.value.message == f'pods "p" is forbidden: {why}'
