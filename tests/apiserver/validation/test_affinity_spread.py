"""What is wrong with spreading."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
                ]
            },
            [],
            id="a sound one",
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
            id="nothing is said",
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
            id="twice the same",
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
            id="a minimum of domains that is only wished for",
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
            id="no domains",
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
            id="policies that nobody knows",
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
            id="a selector that cannot be",
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
            id="label keys that cannot be",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
