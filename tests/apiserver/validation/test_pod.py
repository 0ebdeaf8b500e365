"""What is wrong with a new pod."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.pod import new_pod_faults
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import pod


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({}, [], id="a sound one"),
        pytest.param(
            {"ephemeralContainers": [{"name": "e", "image": "x"}]},
            ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
            id="ephemeral containers come later",
        ),
        pytest.param(
            {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
            ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
            id="a node behind a gate",
        ),
    ],
)
def test_new_pods(spec: Document, faults: list[str]) -> None:
    assert messages(new_pod_faults(pod(spec)["spec"], pod(spec)["metadata"])) == faults
