"""Text becomes data, over what is there."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.secret import default_secret


def test_text_becomes_data() -> None:
    secret: Document = {"data": {"a": "YQ==", "b": "Yg=="}, "stringData": {"a": "z", "c": ""}}
    default_secret(secret)
    assert secret == {"data": {"a": "eg==", "b": "Yg==", "c": ""}, "type": "Opaque"}
    default_secret(secret)
    assert secret["data"] == {"a": "eg==", "b": "Yg==", "c": ""}


def test_a_type_that_is_said_stays() -> None:
    secret: Document = {"type": "example.com/own"}
    default_secret(secret)
    assert secret == {"type": "example.com/own"}
