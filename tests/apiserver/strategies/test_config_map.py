"""A change of a ConfigMap is judged as a change first and as a ConfigMap then."""

from __future__ import annotations

from mooring.api.kinds import CONFIG_MAP
from tests.apiserver.core_documents import changed, created, document


def test_a_frozen_one_stays() -> None:
    old = document(CONFIG_MAP, data={"a": "b"}, immutable=True)
    faults, _ = changed(CONFIG_MAP, old, data={"..": "b"})
    assert faults == [
        "data: Forbidden: field is immutable when `immutable` is set",
        "data[..]: Invalid value: \"..\": must not be '..'",
    ]


def test_a_new_one_is_judged() -> None:
    assert created(CONFIG_MAP, document(CONFIG_MAP, data={"a": "b"})) == []
