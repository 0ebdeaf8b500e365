from __future__ import annotations

from typing import Any

import pytest

from mooring.api.schema.tables import struct_named
from mooring.apiserver.wire.examine import DecodingError
from mooring.apiserver.wire.unstructured import examine_unstructured


def examined(raw: Any) -> list[str]:
    return examine_unstructured(struct_named("apps", "Deployment"), raw)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"metadata": "x"}, "cannot restore struct from: string"),
        ({"metadata": {"labels": 1.5}}, "cannot restore map from float64"),
        ({"metadata": {"labels": {"x": 5}}}, "cannot convert int64 to string"),
        ({"metadata": {"labels": {"x": True}}}, "unrecognized type: string"),
        ({"metadata": {"uid": 5}}, "cannot convert int64 to types.UID"),
        ({"metadata": {"finalizers": {}}}, "cannot restore slice from map"),
        ({"metadata": {"creationTimestamp": 5}}, "json: cannot unmarshal number into Go value of type string"),
        ({"spec": {"replicas": "x"}}, "unrecognized type: int32"),
        ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        ({"spec": {"paused": "x"}}, "unrecognized type: bool"),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1.5}}}},
            "json: cannot unmarshal number 1.5 into Go value of type int32",
        ),
        (
            {"spec": {"template": {"spec": {"overhead": {"cpu": "x"}}}}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ({"kind": 5}, "cannot convert int64 to string"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_type_errors_have_no_path(raw: Any, error: str) -> None:
    with pytest.raises(DecodingError) as raised:
        examined(raw)
    assert str(raised.value) == error


def test_unknown_fields_are_sorted() -> None:
    raw = {"top": 1, "spec": {"template": {"spec": {"containers": [{"imag": 1}]}}, "frob": 1}, "kind": "Deployment"}
    assert examined(raw) == [
        'unknown field "spec.frob"',
        'unknown field "spec.template.spec.containers[0].imag"',
        'unknown field "top"',
    ]


def test_bytes_must_be_base64() -> None:
    with pytest.raises(DecodingError, match="error decoding from json: illegal base64 data at input byte 0"):
        examine_unstructured(struct_named("core", "Secret"), {"data": {"a": "!"}})
    assert examine_unstructured(struct_named("core", "Secret"), {"data": {"a": "YQ=="}}) == []


def test_whole_numbers_will_do_and_large_ones_overflow() -> None:
    raw = {"spec": {"replicas": 3_000_000_000, "minReadySeconds": 2.0}}
    assert examined(raw) == []
    assert raw["spec"] == {"replicas": -1_294_967_296, "minReadySeconds": 2}


@pytest.mark.parametrize("large", [1 << 64, -(1 << 70), 1e300])
def test_what_no_64_bits_hold_is_the_least_number(large: float) -> None:
    security = {"supplementalGroups": [large, 7.0]}
    raw = {"spec": {"activeDeadlineSeconds": large, "priority": large, "securityContext": security, "containers": []}}
    assert examine_unstructured(struct_named("core", "Pod"), raw) == []
    assert raw["spec"]["activeDeadlineSeconds"] == -(1 << 63)
    assert raw["spec"]["priority"] == 0
    assert security["supplementalGroups"] == [-(1 << 63), 7]
