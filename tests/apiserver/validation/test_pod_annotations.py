"""What is wrong with annotations that mean something to pods."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.pod_annotations import (
    pod_annotations_faults,
    pod_annotations_update_faults,
    profiles_match_faults,
)
from mooring.apiserver.validation.pod_options import STRICT_POD
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import changed, pod, stored

MIRROR = "kubernetes.io/config.mirror"
COST = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


@pytest.mark.parametrize(
    ("annotations", "faults"),
    [
        pytest.param({"x": "y"}, [], id="one that means nothing"),
        pytest.param(
            {MIRROR: "x"},
            [f'a[{MIRROR}]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set'],
            id="a mirror of nowhere",
        ),
        pytest.param({COST: "-12"}, [], id="a cost"),
        pytest.param({COST: "+1"}, [f'a[{COST}]: Invalid value: "+1": must be a 32bit integer'], id="a signed cost"),
        pytest.param({COST: "008"}, [f'a[{COST}]: Invalid value: "008": must be a 32bit integer'], id="a padded cost"),
        pytest.param(
            {SECCOMP: "x"},
            [f'a.{SECCOMP}: Invalid value: "x": must be a valid seccomp profile'],
            id="a seccomp profile that nobody knows",
        ),
        pytest.param(
            {f"{APPARMOR}z": "foo"},
            [
                f'a[{APPARMOR}z]: Invalid value: "z": container not found',
                f'a[{APPARMOR}z]: Invalid value: "foo": invalid AppArmor profile name: "foo"',
            ],
            id="an unknown profile for an unknown container",
        ),
    ],
)
def test_annotations(annotations: dict[str, str], faults: list[str]) -> None:
    assert messages(pod_annotations_faults(annotations, pod()["spec"], "a")) == faults


@pytest.mark.parametrize(
    ("annotations", "spec", "container", "faults"),
    [
        pytest.param({SECCOMP: "unconfined"}, {}, {}, [], id="only an annotation"),
        pytest.param(
            {SECCOMP: "unconfined"},
            {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
            {},
            ["spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"],
            id="two seccomp profiles",
        ),
        pytest.param(
            {f"{APPARMOR}c": "localhost/a"},
            {},
            {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "b"}}},
            [
                "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: "
                "apparmor profile in annotation and field must match"
            ],
            id="two local AppArmor profiles",
        ),
    ],
)
def test_profiles_agree(annotations: dict[str, str], spec: Document, container: Document, faults: list[str]) -> None:
    assert messages(profiles_match_faults(annotations, pod(spec, container)["spec"], "spec")) == faults


def test_some_annotations_stay_as_they_are() -> None:
    old = stored(pod({"nodeName": "n"}, metadata={"annotations": {MIRROR: "x"}}))
    new = changed(old, metadata={"annotations": {f"{APPARMOR}c": "unconfined"}})
    assert messages(pod_annotations_update_faults(new, old, "a", STRICT_POD)) == [
        f"a[{MIRROR}]: Forbidden: may not remove or update mirror pod annotation",
        f"a[{APPARMOR}c]: Forbidden: may not add AppArmor annotations",
    ]
