"""What is wrong with templates of pods."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.pod_template import pod_template_faults
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import pod


@pytest.mark.parametrize(
    ("metadata", "spec", "faults"),
    [
        pytest.param({"labels": {"a": "b"}}, {}, [], id="a sound one"),
        pytest.param(
            {"labels": {"a": "b c"}},
            {},
            ['t.labels: Invalid value: "b c": a valid label must be an empty string or consist of'],
            id="labels are told without metadata",
        ),
        pytest.param(
            {},
            {"ephemeralContainers": [{"name": "e", "image": "x"}]},
            ["t.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"],
            id="ephemeral containers",
        ),
        pytest.param({}, {"volumes": [{"name": "v", "image": {}}]}, [], id="an image that will be filled in"),
        pytest.param(
            {}, {"containers": [{"name": "c", "image": " "}]}, [], id="space in place of an image, which others fill in"
        ),
    ],
)
def test_templates(metadata: Document, spec: Document, faults: list[str]) -> None:
    found = messages(pod_template_faults({"metadata": metadata, "spec": pod(spec)["spec"]}, "t"))
    assert len(found) == len(faults), found
    assert all(each.startswith(beginning) for each, beginning in zip(found, faults, strict=True)), found
