"""A secret of a certain type brings what the readers of that type look for."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import SECRET
from mooring.apiserver.validation.secret import secret_faults
from tests.apiserver.core_documents import document
from tests.apiserver.field_errors import messages

REDACTED = 'Invalid value: "<secret contents redacted>"'


@pytest.mark.parametrize(
    ("kind", "texts", "faults"),
    [
        pytest.param("", {}, [], id="opaque ones hold anything"),
        pytest.param("example.com/own", {}, [], id="so do those of others"),
        pytest.param("kubernetes.io/tls", {"tls.crt": ""}, ["data[tls.key]: Required value"], id="a certificate"),
        pytest.param(
            "kubernetes.io/ssh-auth", {"ssh-privatekey": ""}, ["data[ssh-privatekey]: Required value"], id="ssh"
        ),
        pytest.param("kubernetes.io/basic-auth", {"username": ""}, [], id="a name without a password"),
        pytest.param(
            "kubernetes.io/basic-auth",
            {},
            ["data[username]: Required value", "data[password]: Required value"],
            id="neither name nor password",
        ),
        pytest.param("kubernetes.io/dockercfg", {}, ["data[.dockercfg]: Required value"], id="no credentials"),
        pytest.param(
            "kubernetes.io/dockerconfigjson",
            {".dockerconfigjson": "[]"},
            [
                f"data[.dockerconfigjson]: {REDACTED}: json: cannot unmarshal array into Go value of type "
                "map[string]interface {}"
            ],
            id="credentials of another form",
        ),
        pytest.param(
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            id="a token of nobody",
        ),
    ],
)
def test_types_ask_for_keys(kind: str, texts: Document, faults: list[str]) -> None:
    assert messages(secret_faults(document(SECRET, type=kind, stringData=texts))) == faults


def test_all_of_it_must_fit() -> None:
    faults = messages(secret_faults(document(SECRET, stringData={"a": "x" * 1_048_577})))
    assert faults == ["data: Too long: may not be more than 1048576 bytes"]
