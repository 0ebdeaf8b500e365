"""Tests of kinds.pod_template."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD_TEMPLATE
from mooring.apiserver.kinds.pod_template import PodTemplateStrategy, validate_pod_template
from tests.apiserver.core_documents import messages
from tests.apiserver.pod_builders import call_for, pod


@pytest.mark.parametrize(
    ("metadata", "spec", "errors"),
    [
        pytest.param({"labels": {"a": "b"}}, {}, [], id="valid"),
        pytest.param(
            {"labels": {"a": "b c"}},
            {},
            ['t.labels: Invalid value: "b c": a valid label must be an empty string or consist of'],
            id="invalid labels",
        ),
        pytest.param(
            {},
            {"ephemeralContainers": [{"name": "e", "image": "x"}]},
            ["t.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"],
            id="ephemeral containers",
        ),
        pytest.param({}, {"volumes": [{"name": "v", "image": {}}]}, [], id="an image volume without a reference"),
        pytest.param({}, {"containers": [{"name": "c", "image": " "}]}, [], id="a blank image"),
    ],
)
def test_pod_templates_are_validated(metadata: Document, spec: Document, errors: list[str]) -> None:
    found = messages(validate_pod_template({"metadata": metadata, "spec": pod(spec)["spec"]}, "t"))
    assert len(found) == len(errors), found
    assert all(each.startswith(beginning) for each, beginning in zip(found, errors, strict=True)), found


STRATEGY = PodTemplateStrategy(POD_TEMPLATE)


def made() -> Document:
    spec = pod({"nodeSelector": {"beta.kubernetes.io/os": "linux"}})["spec"]
    return {"metadata": {"name": "t", "namespace": "n"}, "template": {"metadata": {}, "spec": spec}}


def test_an_update_increments_the_generation_only_for_changes_of_the_template() -> None:
    old = made()
    STRATEGY.prepare_for_create(old, call_for(POD_TEMPLATE))
    assert STRATEGY.validate(old, call_for(POD_TEMPLATE)) == []
    new = deepcopy(old)
    new["metadata"]["labels"] = {"a": "b"}
    STRATEGY.prepare_for_update(new, old, call_for(POD_TEMPLATE))
    assert (new["metadata"]["generation"], STRATEGY.warnings_on_update(new, old, call_for(POD_TEMPLATE))) == (1, [])
    new["template"]["spec"]["schedulerName"] = "x"
    STRATEGY.prepare_for_update(new, old, call_for(POD_TEMPLATE))
    assert new["metadata"]["generation"] == 2
    assert STRATEGY.warnings_on_update(new, old, call_for(POD_TEMPLATE)) == [
        'template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
