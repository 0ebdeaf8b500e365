"""Tests of kinds.pod.security."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import errors_of, pod


@pytest.mark.parametrize(
    ("container", "errors"),
    [
        pytest.param(
            {"securityContext": {"windowsOptions": {"runAsUserName": "DOMAIN\\user"}}}, [], id="a user with a domain"
        ),
        pytest.param(
            {
                "securityContext": {
                    "windowsOptions": {"gmsaCredentialSpecName": "", "gmsaCredentialSpec": "", "runAsUserName": ""}
                }
            },
            [
                (
                    "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpecName: Invalid "
                    'value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
                    "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
                (
                    "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "
                    '"": gmsaCredentialSpec cannot be an empty string'
                ),
                (
                    'spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "": '
                    "runAsUserName cannot be an empty string"
                ),
            ],
            id="everything empty",
        ),
        pytest.param(
            {"securityContext": {"windowsOptions": {"runAsUserName": "a\\b\\c"}}},
            [
                (
                    "spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "
                    '"a\\\\b\\\\c": runAsUserName cannot contain more than one backslash'
                )
            ],
            id="two backslashes",
        ),
        pytest.param(
            {"securityContext": {"windowsOptions": {"runAsUserName": "do main\\u:ser"}}},
            [
                (
                    'spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "do '
                    "main\\\\u:ser\": runAsUserName's User cannot contain the following characters: "
                    '"/\\:;|=,+*?<>@[]'
                )
            ],
            id="bad characters",
        ),
        pytest.param(
            {"securityContext": {"windowsOptions": {"runAsUserName": ".."}}},
            [
                (
                    'spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "..": '
                    "runAsUserName's User cannot contain only periods or spaces"
                )
            ],
            id="dots only",
        ),
        pytest.param(
            {"securityContext": {"windowsOptions": {"hostProcess": True}}},
            [
                (
                    "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any "
                    "hostProcess containers"
                )
            ],
            id="a host process without the network of the host",
        ),
    ],
)
def test_windows_options_are_validated(container: Document, errors: list[str]) -> None:
    assert errors_of(pod(container=container)) == errors


@pytest.mark.parametrize(
    ("container", "errors"),
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
            id="unknown types",
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
            id="a local profile with an absolute path",
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
            id="a name for another type",
        ),
    ],
)
def test_seccomp_and_apparmor_profiles_are_validated(container: Document, errors: list[str]) -> None:
    assert errors_of(pod(container=container)) == errors


@pytest.mark.parametrize(
    ("container", "errors"),
    [
        pytest.param({"securityContext": {"runAsUser": 1000, "readOnlyRootFilesystem": True}}, [], id="valid"),
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
            id="an unknown procMount",
        ),
    ],
)
def test_security_contexts_of_containers_are_validated(container: Document, errors: list[str]) -> None:
    assert errors_of(pod(container=container)) == errors
