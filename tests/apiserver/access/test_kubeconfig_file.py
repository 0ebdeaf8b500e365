"""A kubeconfig is written for kubectl, for its owner only, and over nobody else's."""

from __future__ import annotations

import stat
from base64 import b64decode
from pathlib import Path

import pytest
import yaml

from mooring.apiserver.access.certificates import ADMIN, make_authority, make_client_certificate
from mooring.apiserver.access.kubeconfig_file import (
    KubeconfigError,
    TokenCredential,
    kubeconfig_document,
    write_kubeconfig,
)

OURS = kubeconfig_document("https://127.0.0.1:6443", b"PEM", "admin", TokenCredential("secret"))
THEIRS = {"clusters": [{"name": "production", "cluster": {}}]}


def test_what_is_written_is_what_kubectl_reads(tmp_path: Path) -> None:
    path = tmp_path / ".kube" / "config"
    write_kubeconfig(path, OURS)
    assert yaml.safe_load(path.read_text()) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "mooring",
                "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "UEVN"},
            }
        ],
        "users": [{"name": "admin", "user": {"token": "secret"}}],
        "contexts": [{"name": "admin@mooring", "context": {"cluster": "mooring", "user": "admin"}}],
        "current-context": "admin@mooring",
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_certificate_stands_in_the_file() -> None:
    authority = make_authority(0)
    admin = make_client_certificate(authority, ADMIN, 0)
    user = kubeconfig_document("https://x", authority.certificate_pem, "admin", admin)["users"][0]["user"]
    assert b64decode(user["client-certificate-data"]) == admin.certificate_pem
    assert b64decode(user["client-key-data"]) == admin.key_pem


def test_a_server_without_tls_and_a_user_without_anything() -> None:
    plain = kubeconfig_document("http://x", None, "anybody", None)
    assert plain["clusters"][0]["cluster"] == {"server": "http://x"}
    assert plain["users"][0]["user"] == {}


def test_a_file_of_ours_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "config"
    write_kubeconfig(path, OURS)
    write_kubeconfig(path, kubeconfig_document("https://other", None, "admin", None))
    assert "https://other" in path.read_text()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(yaml.safe_dump(THEIRS), id="somebody's own"),
        pytest.param(yaml.safe_dump({"clusters": [*THEIRS["clusters"], *OURS["clusters"]]}), id="ours and others"),
        pytest.param("", id="an empty one"),
        pytest.param("clusters: []", id="one without clusters"),
        pytest.param("- a\n- b\n", id="something else"),
        pytest.param("{", id="no YAML"),
        pytest.param("clusters: {name: mooring}", id="clusters that are no list"),
    ],
)
def test_anybody_elses_file_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(KubeconfigError, match="exists and was not written by us: choose another path"):
        write_kubeconfig(path, OURS)
    assert path.read_text() == content
    write_kubeconfig(path, OURS, may_overwrite=True)
    assert yaml.safe_load(path.read_text()) == OURS


def test_a_path_that_is_not_writable_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KubeconfigError, match="cannot write the kubeconfig"):
        write_kubeconfig(tmp_path / "file" / "config", OURS)


def test_no_token_is_shown() -> None:
    assert "secret" not in repr(TokenCredential("secret"))
