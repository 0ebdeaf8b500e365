"""What is wrong with the security context of a container."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("container", "faults"),
    [
        pytest.param({"securityContext": {"runAsUser": 1000, "readOnlyRootFilesystem": True}}, [], id="a sound one"),
        pytest.param(
            {"securityContext": {"runAsUser": -1, "runAsGroup": 2147483648}},
            [
                (
                    "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 "
                    "and 2147483647, inclusive"
                ),
                (
                    "spec.containers[0].securityContext.runAsGroup: Invalid value: 2147483648: must be "
                    "between 0 and 2147483647, inclusive"
                ),
            ],
            id="users and groups out of range",
        ),
        pytest.param(
            {"securityContext": {"procMount": "Unmasked"}},
            [
                (
                    'spec.containers[0].securityContext.procMount: Invalid value: "Unmasked": `hostUsers` '
                    "must be false to use `Unmasked`"
                )
            ],
            id="an unmasked /proc with the users of the host",
        ),
        pytest.param(
            {"securityContext": {"procMount": "X"}},
            [
                (
                    'spec.containers[0].securityContext.procMount: Unsupported value: "X": supported '
                    'values: "Default", "Unmasked"'
                )
            ],
            id="a /proc that nobody knows",
        ),
    ],
)
def test_containers(container: Document, faults: list[str]) -> None:
    assert faults_of(pod(container=container)) == faults
