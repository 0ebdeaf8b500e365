"""Tests of kinds.config_map."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP
from mooring.apiserver.kinds.config_map import (
    DATA_BYTES_MAX,
    decoded_length,
    validate_config_map,
    validate_immutable_data,
)
from tests.apiserver.core_documents import changed, created, document, messages

TOO_LONG = "[]: Too long: may not be more than 1048576 bytes"
IMMUTABLE = "Forbidden: field is immutable when `immutable` is set"


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        pytest.param({"data": {"a.b": "c"}}, [], id="a plain key"),
        pytest.param({"data": {"..": ""}}, ["data[..]: Invalid value: \"..\": must not be '..'"], id="two dots"),
        pytest.param(
            {"data": {"q": ""}, "binaryData": {"q": "YQ=="}},
            ['data[q]: Invalid value: "q": duplicate of key present in binaryData'],
            id="a key in both maps",
        ),
        pytest.param({"data": {"a": "x" * DATA_BYTES_MAX}}, [], id="the maximum size"),
        pytest.param({"data": {"a": "é" * (DATA_BYTES_MAX // 2), "b": "x"}}, [TOO_LONG], id="bytes are counted"),
    ],
)
def test_keys_and_sizes_of_config_maps_are_validated(body: Document, errors: list[str]) -> None:
    assert messages(validate_config_map(document(CONFIG_MAP, **body))) == errors


@pytest.mark.parametrize(
    ("new", "errors"),
    [
        pytest.param({"data": {"a": "b"}, "immutable": True}, [], id="nothing changed"),
        pytest.param({"data": {"a": "c"}, "immutable": True}, [f"data: {IMMUTABLE}"], id="other data"),
        pytest.param({"data": {"a": "b"}}, [f"immutable: {IMMUTABLE}"], id="immutable is removed"),
        pytest.param({}, [f"immutable: {IMMUTABLE}", f"data: {IMMUTABLE}"], id="both"),
    ],
)
def test_data_of_immutable_objects_cannot_be_changed(new: Document, errors: list[str]) -> None:
    old = {"data": {"a": "b"}, "immutable": True}
    assert messages(validate_immutable_data(new, old, "data", "binaryData")) == errors
    assert validate_immutable_data(new, {"data": {"a": "b"}}, "data") == []


@pytest.mark.parametrize(("text", "length"), [("", 0), ("YQ==", 1), ("YWE=", 2), ("YWFh", 3)])
def test_decoded_length_measures_base64_without_decoding(text: str, length: int) -> None:
    assert decoded_length(text) == length


def test_an_update_of_an_immutable_config_map_is_rejected() -> None:
    old = document(CONFIG_MAP, data={"a": "b"}, immutable=True)
    errors, _ = changed(CONFIG_MAP, old, data={"..": "b"})
    assert errors == [
        "data: Forbidden: field is immutable when `immutable` is set",
        "data[..]: Invalid value: \"..\": must not be '..'",
    ]


def test_a_new_config_map_is_validated() -> None:
    assert created(CONFIG_MAP, document(CONFIG_MAP, data={"a": "b"})) == []
