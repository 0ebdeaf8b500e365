"""What a stored pod is forgiven."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.pod_options import STRICT, STRICT_POD
from mooring.apiserver.validation.pod_ratchet import options_after
from mooring.apiserver.validation.pod_update import pod_update_faults
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import faults_of, pod, stored

TERM: Document = {
    "topologyKey": "z",
    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]},
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"affinity": {"podAffinity": {REQUIRED: [TERM]}}}, id="a selector of pods"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {
                            "nodeSelectorTerms": [{"matchExpressions": TERM["labelSelector"]["matchExpressions"]}]
                        }
                    }
                }
            },
            id="a selector of nodes",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", **TERM},
                ]
            },
            id="a selector of spreading",
        ),
        pytest.param(
            {"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net.x", "value": "1"}]}},
            id="kernel parameters of the host",
        ),
        pytest.param({"securityContext": {"seLinuxChangePolicy": "MountOption"}}, id="labels changed by mounting"),
        pytest.param({"hostUsers": False, "hostNetwork": True}, id="users of its own on the network of the host"),
        pytest.param({"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]}, id="a comparison"),
    ],
)
def test_what_was_wrong_may_stay(spec: Document) -> None:
    assert faults_of(pod(spec)) != []
    old = stored(pod(spec))
    assert messages(pod_update_faults(old, old, options_after(old, is_pod=True))) == []


def test_new_objects_are_forgiven_nothing() -> None:
    assert options_after(None, is_pod=False) == STRICT
    assert options_after(stored(pod()), is_pod=True) == STRICT_POD
