"""Tests of kinds.pod.scheduling."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import errors_of, pod


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({"tolerations": [{"operator": "Exists"}]}, [], id="everything is tolerated"),
        pytest.param(
            {"tolerations": [{}]},
            [
                (
                    'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` '
                    'is empty, which means "match all values and all keys"'
                )
            ],
            id="empty",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
            [("spec.tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'")],
            id="a value with Exists",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "value": "b c"}]},
            [
                (
                    'spec.tolerations[0].operator: Invalid value: "b c": a valid label must be an empty '
                    "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
                    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
                    "used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            ],
            id="an invalid value",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "In"}]},
            [('spec.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"')],
            id="an unknown operator",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Lt", "value": "5"}]},
            [
                (
                    'spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", '
                    '"Exists", "Lt", "Gt"'
                )
            ],
            id="a comparison behind a disabled feature gate",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "effect": "Never"}]},
            [
                (
                    'spec.tolerations[0].effect: Unsupported value: "Never": supported values: '
                    '"NoSchedule", "PreferNoSchedule", "NoExecute"'
                )
            ],
            id="an unknown effect",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "tolerationSeconds": 5}]},
            [
                (
                    "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when "
                    "`tolerationSeconds` is set"
                )
            ],
            id="tolerationSeconds without NoExecute",
        ),
    ],
)
def test_tolerations_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
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
            id="valid",
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
            id="invalid expressions",
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
            id="invalid fields of nodes",
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
            id="a weight of zero",
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
            id="an invalid value in a preference is allowed",
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
            id="pod affinity without a topology key",
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
            id="invalid selectors of pods",
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
            id="a label key in matchLabelKeys and mismatchLabelKeys",
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
def test_affinity_is_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
                ]
            },
            [],
            id="valid",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{}]},
            [
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
                (
                    'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "": supported '
                    'values: "DoNotSchedule", "ScheduleAnyway"'
                ),
            ],
            id="empty",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}},
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}},
                ]
            },
            [
                (
                    "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
                    '"{z, DoNotSchedule}"'
                )
            ],
            id="duplicate constraints",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {},
                        "minDomains": 2,
                    }
                ]
            },
            [
                (
                    "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use "
                    "minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                )
            ],
            id="minDomains with ScheduleAnyway",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {},
                        "minDomains": 0,
                    }
                ]
            },
            [("spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero")],
            id="minDomains of zero",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {},
                        "nodeAffinityPolicy": "X",
                        "nodeTaintsPolicy": "Y",
                    }
                ]
            },
            [
                (
                    'spec.topologySpreadConstraints[0].nodeAffinityPolicy: Unsupported value: "X": '
                    'supported values: "Honor", "Ignore"'
                ),
                (
                    'spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: "Y": supported '
                    'values: "Honor", "Ignore"'
                ),
            ],
            id="unknown policies",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"a": "b c"}},
                    }
                ]
            },
            [
                (
                    'spec.topologySpreadConstraints[0].labelSelector.matchLabels: Invalid value: "b c": a '
                    "valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
                    "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
                    "'my_value',  or '12345', regex used for validation is "
                    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                )
            ],
            id="an invalid selector",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {
                            "matchLabels": {"a": "b"},
                            "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
                        },
                        "matchLabelKeys": ["a"],
                    }
                ]
            },
            [
                (
                    'spec.topologySpreadConstraints[0][0]: Invalid value: "a": exists in both '
                    "matchLabelKeys and labelSelector"
                )
            ],
            id="a label key that is in the selector too",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {},
                        "matchLabelKeys": ["a b"],
                    }
                ]
            },
            [
                (
                    'spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "a b": name part '
                    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
                    "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
                    "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                )
            ],
            id="invalid label keys",
        ),
    ],
)
def test_topology_spread_constraints_are_validated(spec: Document, errors: list[str]) -> None:
    assert errors_of(pod(spec)) == errors
