"""In a pod the service account says where the API server is and who we are."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.client.http.connection import REREAD_S
from mooring.client.kubeconfig.entries import KubeconfigError
from mooring.client.kubeconfig.incluster import in_cluster_connection
from mooring.kit.clock import VirtualClock

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_pod_knows_its_server_and_its_token_is_renewed(tmp_path: Path) -> None:
    for name, text in (("token", "one"), ("ca.crt", "authority"), ("namespace", "kube-system\n")):
        (tmp_path / name).write_text(text)
    clock = VirtualClock()
    connection = in_cluster_connection(clock, POD, folder=str(tmp_path))
    assert (connection.server, connection.authority) == ("https://10.96.0.1:443", b"authority")
    assert connection.namespace == "kube-system"
    for token, at_s in (("one", 0.0), ("two", REREAD_S)):
        (tmp_path / "token").write_text(token)
        clock.advance_to(at_s)
        identity = connection.credentials.identity_nowait()
        assert identity is not None
        assert identity.authorization == f"Bearer {token}"


def test_an_address_of_the_newer_kind_is_put_in_brackets(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    connection = in_cluster_connection(
        VirtualClock(), {**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, folder=str(tmp_path)
    )
    assert (connection.server, connection.authority) == ("https://[fd00::1]:443", b"")
    assert connection.namespace == "default"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"),
        (POD, "token: there is no such file; is a service account mounted"),
    ],
)
def test_what_is_missing_is_told(tmp_path: Path, environment: dict[str, str], words: str) -> None:
    with pytest.raises(KubeconfigError, match=words):
        in_cluster_connection(VirtualClock(), environment, folder=str(tmp_path))
