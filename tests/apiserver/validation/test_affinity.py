"""What is wrong with affinity."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]}
                            ]
                        }
                    }
                }
            },
            [],
            id="a sound one",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelector"
                    "Terms: Required value: must have at least one node selector term"
                )
            ],
            id="no terms",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": "a", "operator": "In"},
                                        {"key": "a", "operator": "Exists", "values": ["x"]},
                                        {"key": "a", "operator": "Gt"},
                                        {"key": "a", "operator": "X"},
                                        {"key": "a", "operator": "In", "values": ["x y"]},
                                    ]
                                }
                            ]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelector"
                    "Terms[0].matchExpressions[0].values: Required value: must be specified when "
                    "`operator` is 'In' or 'NotIn'"
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelector"
                    "Terms[0].matchExpressions[1].values: Forbidden: may not be specified when `operator` "
                    "is 'Exists' or 'DoesNotExist'"
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelector"
                    "Terms[0].matchExpressions[2].values: Required value: must be specified single value "
                    "when `operator` is 'Lt' or 'Gt'"
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelector"
                    'Terms[0].matchExpressions[3].operator: Invalid value: "X": not a valid selector '
                    "operator"
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelector"
                    'Terms[0].matchExpressions[4].values[0]: Invalid value: "x y": a valid label must be '
                    "an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
                    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
                    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                ),
            ],
            id="bad expressions",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchFields": [
                                        {"key": "metadata.name", "operator": "In", "values": ["A_"]},
                                        {"key": "spec.x", "operator": "Exists"},
                                    ]
                                }
                            ]
                        }
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelector"
                    'Terms[0].matchFields[0].values[0]: Invalid value: "A_": a lowercase RFC 1123 '
                    "subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
                    "start and end with an alphanumeric character (e.g. 'example.com', regex used for "
                    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelector"
                    'Terms[0].matchFields[1].operator: Invalid value: "Exists": not a valid selector '
                    "operator"
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelector"
                    'Terms[0].matchFields[1].key: Invalid value: "spec.x": not a valid field selector key'
                ),
            ],
            id="bad fields of nodes",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}]
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
                    "Invalid value: 0: must be in the range 1-100"
                )
            ],
            id="a weight of nothing",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 1,
                                "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x y"]}]},
                            }
                        ]
                    }
                }
            },
            [],
            id="a preference for a value that cannot be is useless but allowed",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}}},
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKe"
                    "y: Required value: can not be empty"
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKe"
                    'y: Invalid value: "": name part must be non-empty'
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKe"
                    "y: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or "
                    "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
                    "'my.name',  or '123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
            ],
            id="pods without a topology",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "z",
                                "labelSelector": {
                                    "matchExpressions": [{"key": "x", "operator": "Z"}, {"key": "y", "operator": "In"}]
                                },
                                "namespaces": ["A_"],
                            }
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelec"
                    'tor.matchExpressions[0].operator: Invalid value: "Z": not a valid selector operator'
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelec"
                    "tor.matchExpressions[1].values: Required value: must be specified when `operator` is "
                    "'In' or 'NotIn'"
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace:"
                    ' Invalid value: "A_": a lowercase RFC 1123 label must consist of lower case '
                    "alphanumeric characters or '-', and must start and end with an alphanumeric character "
                    "(e.g. 'my-name',  or '123-abc', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                ),
            ],
            id="bad selectors of pods",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "z", "matchLabelKeys": ["a"]}
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabel"
                    "Keys: Forbidden: must not be specified when labelSelector is not set"
                )
            ],
            id="label keys without a selector",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "z",
                                "labelSelector": {},
                                "matchLabelKeys": ["a"],
                                "mismatchLabelKeys": ["a"],
                            }
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabel"
                    'Keys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys'
                )
            ],
            id="a label key wanted and not wanted",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 200, "podAffinityTerm": {"topologyKey": "z", "labelSelector": {}}}
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weigh"
                    "t: Invalid value: 200: must be in the range 1-100"
                )
            ],
            id="a weight of two hundred",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
