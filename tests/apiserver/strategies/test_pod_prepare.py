"""What the server adds to a new pod."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.strategies.pod_prepare import merge_label_keys, move_apparmor_annotations
from tests.apiserver.pod_builders import call_for, pod

KEY = "container.apparmor.security.beta.kubernetes.io/c"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_label_keys_become_expressions() -> None:
    term = {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["v", "absent"], "mismatchLabelKeys": ["w"]}
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["v"]}
    made = pod(
        {
            "affinity": {"podAntiAffinity": {REQUIRED: [term]}},
            "topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": {"a": "b"}}}, constraint],
        },
        metadata={"labels": {"v": "1", "w": "2"}},
    )
    merge_label_keys(made)
    (selected,) = made["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    assert selected["labelSelector"]["matchExpressions"] == [
        {"key": "v", "operator": "In", "values": ["1"]},
        {"key": "w", "operator": "NotIn", "values": ["2"]},
    ]
    with_selector, without = made["spec"]["topologySpreadConstraints"]
    assert with_selector["labelSelector"]["matchExpressions"] == [{"key": "v", "operator": "In", "values": ["1"]}]
    assert "labelSelector" not in without


@pytest.mark.parametrize(
    ("annotation", "pod_profile", "profile", "warns"),
    [
        pytest.param("unconfined", None, {"type": "Unconfined"}, True, id="a profile moves"),
        pytest.param("localhost/a", None, {"type": "Localhost", "localhostProfile": "a"}, True, id="a local one moves"),
        pytest.param("unconfined", {"type": "Unconfined"}, None, False, id="the pod already says so"),
        pytest.param("nonsense", None, None, True, id="what means nothing stays"),
    ],
)
def test_apparmor(annotation: str, pod_profile: Document | None, profile: Document | None, warns: bool) -> None:
    context = {"appArmorProfile": pod_profile} if pod_profile else {}
    made = pod({"securityContext": context}, metadata={"annotations": {KEY: annotation}})
    call = call_for()
    move_apparmor_annotations(made, call)
    found = (made["spec"]["containers"][0].get("securityContext") or {}).get("appArmorProfile")
    advice = f'metadata.annotations[{KEY}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    assert (found, call.warnings) == (profile, [advice] if warns else [])
