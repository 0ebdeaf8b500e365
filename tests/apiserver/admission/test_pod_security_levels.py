"""Levels and versions."""

from __future__ import annotations

import pytest

from mooring.apiserver.admission.pod_security import (
    BASELINE,
    PRIVILEGED,
    RESTRICTED,
    Level,
    text_of,
    violations_of,
)
from mooring.apiserver.admission.pod_security_checks import Violation
from tests.apiserver.admission.builders import container, pod

HOSTILE = pod(
    containers=[container(securityContext={"privileged": True})], hostPID=True, volumes=[{"name": "v", "hostPath": {}}]
)


@pytest.mark.parametrize(
    ("level", "reasons"),
    [
        (Level(PRIVILEGED), []),
        (Level(BASELINE), ["host namespaces", "hostPath volumes", "privileged"]),
        (
            Level(RESTRICTED),
            [
                "host namespaces",
                "privileged",
                "allowPrivilegeEscalation != false",
                "unrestricted capabilities",
                "restricted volume types",
                "runAsNonRoot != true",
                "seccompProfile",
            ],
        ),
    ],
    ids=str,
)
def test_a_stricter_level_asks_more_and_asks_nothing_twice(level: Level, reasons: list[str]) -> None:
    found = violations_of(level, HOSTILE["metadata"], HOSTILE["spec"])
    assert [each.reason for each in found] == reasons


@pytest.mark.parametrize(
    ("level", "text"), [(Level(BASELINE), "baseline:latest"), (Level(RESTRICTED, 24), "restricted:v1.24")]
)
def test_a_level_as_text(level: Level, text: str) -> None:
    assert str(level) == text


def test_violations_as_text() -> None:
    assert text_of([Violation("a", "b"), Violation("c", "")]) == "a (b), c"
