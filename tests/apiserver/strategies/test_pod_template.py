"""What is special about pod templates."""

from __future__ import annotations

from copy import deepcopy

from mooring.api.document import Document
from mooring.api.kinds import POD_TEMPLATE
from mooring.apiserver.strategies.pod_template import PodTemplateStrategy
from tests.apiserver.pod_builders import call_for, pod

STRATEGY = PodTemplateStrategy(POD_TEMPLATE)


def made() -> Document:
    spec = pod({"nodeSelector": {"beta.kubernetes.io/os": "linux"}})["spec"]
    return {"metadata": {"name": "t", "namespace": "n"}, "template": {"metadata": {}, "spec": spec}}


def test_a_generation_counts_changes_of_the_template() -> None:
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
