"""What is wrong with tolerations."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from tests.apiserver.pod_builders import faults_of, pod


@pytest.mark.parametrize(
    ("spec", "faults"),
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
            id="nothing is said",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
            [("spec.tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'")],
            id="a value where none counts",
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
            id="a value that cannot be",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "In"}]},
            [('spec.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"')],
            id="an operator that nobody knows",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Lt", "value": "5"}]},
            [
                (
                    'spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", '
                    '"Exists", "Lt", "Gt"'
                )
            ],
            id="a comparison, which is not on yet",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "effect": "Never"}]},
            [
                (
                    'spec.tolerations[0].effect: Unsupported value: "Never": supported values: '
                    '"NoSchedule", "PreferNoSchedule", "NoExecute"'
                )
            ],
            id="an effect that nobody knows",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "tolerationSeconds": 5}]},
            [
                (
                    "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when "
                    "`tolerationSeconds` is set"
                )
            ],
            id="seconds without an eviction",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert faults_of(pod(spec)) == faults
