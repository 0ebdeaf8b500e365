"""What is wrong with options for Windows."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("container", "faults"),
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
def test_containers(container: Document, faults: list[str]) -> None:
    assert faults_of(pod(container=container)) == faults
