"""The type of a secret never changes, nor does a frozen secret."""

from __future__ import annotations

from mooring.api.kinds import SECRET
from tests.apiserver.core_documents import call, changed, document, strategy

TLS = {"tls.crt": "x", "tls.key": "y"}


def test_the_type_stays() -> None:
    old = document(SECRET, type="example.com/own", data={"a": "YQ=="}, immutable=True)
    faults, _ = changed(SECRET, old, type="example.com/other", data={"a": "Yg=="})
    assert faults == [
        'type: Invalid value: "example.com/other": field is immutable',
        "data: Forbidden: field is immutable when `immutable` is set",
    ]


def test_a_pair_of_keys_that_is_none_is_told() -> None:
    how, secret = strategy(SECRET), document(SECRET, type="kubernetes.io/tls", stringData=TLS)
    warning = "tls: failed to find any PEM data in certificate input"
    assert how.warnings_on_create(secret, call(SECRET)) == [warning]
    assert how.warnings_on_update(secret, secret, call(SECRET)) == [warning]
    assert how.warnings_on_create(document(SECRET, stringData=TLS), call(SECRET)) == []
    assert how.selectable_fields(secret) == {"type": "kubernetes.io/tls"}
