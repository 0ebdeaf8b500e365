"""What is wrong with the names and the network of a pod."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {"dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b.", "_x.y", "."]}}, [], id="a sound one"
        ),
        pytest.param(
            {"dnsPolicy": "X"},
            [
                (
                    'spec.dnsPolicy: Unsupported value: "X": supported values: "ClusterFirstWithHostNet", '
                    '"ClusterFirst", "Default", "None"'
                )
            ],
            id="a policy that nobody knows",
        ),
        pytest.param(
            {"dnsPolicy": "None"},
            ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
            id="no names at all",
        ),
        pytest.param(
            {"dnsPolicy": "None", "dnsConfig": {}},
            [
                (
                    "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver "
                    "when `dnsPolicy` is None"
                )
            ],
            id="no name server",
        ),
        pytest.param(
            {"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}},
            [
                (
                    'spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1","1.1.1.2","1.1.1.3","1.1.1.4"]: '
                    "must not have more than 3 nameservers"
                )
            ],
            id="four name servers",
        ),
        pytest.param(
            {"dnsConfig": {"nameservers": ["010.1.1.1", "x"], "options": [{"value": "x"}]}},
            [
                'spec.dnsConfig.nameservers[0]: Invalid value: "010.1.1.1": must not have leading 0s',
                (
                    'spec.dnsConfig.nameservers[1]: Invalid value: "x": must be a valid IP address, (e.g. '
                    "10.9.8.7 or 2001:db8::ffff)"
                ),
                "spec.dnsConfig.options[0]: Required value: must not be empty",
            ],
            id="bad name servers",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "1.2.3", "hostnames": ["A_"]}]},
            [
                (
                    'spec.hostAliases[0].ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. '
                    "10.9.8.7 or 2001:db8::ffff)"
                ),
                (
                    'spec.hostAliases[0].hostnames[0]: Invalid value: "A_": a lowercase RFC 1123 subdomain '
                    "must consist of lower case alphanumeric characters, '-' or '.', and must start and "
                    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
            ],
            id="a host alias that cannot be",
        ),
        pytest.param(
            {"hostnameOverride": "A_", "setHostnameAsFQDN": True},
            [
                "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
                (
                    'spec.hostnameOverride: Invalid value: "A_": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and end "
                    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
            ],
            id="a hostname that is overridden twice",
        ),
        pytest.param(
            {
                "hostNetwork": True,
                "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 2}]}],
            },
            [
                (
                    "spec.containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` "
                    "when `hostNetwork` is true"
                )
            ],
            id="ports beside those of the host",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
