"""What is wrong with bindings."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.pod_binding import binding_faults
from tests.apiserver.field_errors import messages


@pytest.mark.parametrize(
    ("target", "faults"),
    [
        pytest.param({"kind": "Node", "name": "n"}, [], id="a node"),
        pytest.param({"name": "n"}, [], id="no kind means a node"),
        pytest.param({"kind": "Node"}, ["target.name: Required value"], id="no name"),
        pytest.param(
            {"kind": "Pod", "name": "n"},
            ['target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'],
            id="something else",
        ),
    ],
)
def test_targets(target: Document, faults: list[str]) -> None:
    assert messages(binding_faults({"target": target})) == faults
