"""What is wrong with seccomp and AppArmor profiles."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("container", "faults"),
    [
        pytest.param(
            {
                "securityContext": {
                    "seccompProfile": {"type": "RuntimeDefault"},
                    "appArmorProfile": {"type": "RuntimeDefault"},
                }
            },
            [],
            id="the profile of the runtime",
        ),
        pytest.param(
            {"securityContext": {"seccompProfile": {}, "appArmorProfile": {}}},
            [
                (
                    "spec.containers[0].securityContext.seccompProfile.type: Required value: type is "
                    "required when seccompProfile is set"
                ),
                (
                    "spec.containers[0].securityContext.appArmorProfile.type: Required value: type is "
                    "required when appArmorProfile is set"
                ),
            ],
            id="no type",
        ),
        pytest.param(
            {"securityContext": {"seccompProfile": {"type": "X"}, "appArmorProfile": {"type": "X"}}},
            [
                (
                    'spec.containers[0].securityContext.seccompProfile.type: Unsupported value: "X": '
                    'supported values: "Localhost", "RuntimeDefault", "Unconfined"'
                ),
                (
                    'spec.containers[0].securityContext.appArmorProfile.type: Unsupported value: "X": '
                    'supported values: "Localhost", "RuntimeDefault", "Unconfined"'
                ),
            ],
            id="types that nobody knows",
        ),
        pytest.param(
            {"securityContext": {"seccompProfile": {"type": "Localhost"}, "appArmorProfile": {"type": "Localhost"}}},
            [
                (
                    "spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: "
                    "must be set when seccomp type is Localhost"
                ),
                (
                    "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Required value: "
                    "must be set when AppArmor type is Localhost"
                ),
            ],
            id="a local profile without a name",
        ),
        pytest.param(
            {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "/a/../b"}}},
            [
                (
                    "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: "
                    '"/a/../b": must be a relative path'
                ),
                (
                    "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: "
                    "\"/a/../b\": must not contain '..'"
                ),
            ],
            id="a local profile elsewhere",
        ),
        pytest.param(
            {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}}},
            [
                (
                    'spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: " '
                    'a": must not be padded with whitespace'
                )
            ],
            id="a padded local profile",
        ),
        pytest.param(
            {"securityContext": {"appArmorProfile": {"type": "Unconfined", "localhostProfile": "a"}}},
            [
                (
                    "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: "
                    '"a": can only be set when AppArmor type is Localhost'
                )
            ],
            id="a name without need",
        ),
    ],
)
def test_containers(container: Document, faults: list[str]) -> None:
    assert faults_of(pod(container=container)) == faults
