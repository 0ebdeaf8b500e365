"""The restricted level: what a pod must give up in so many words."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.admission.pod_security import LATEST, RESTRICTED, Level, text_of, violations_of
from tests.apiserver.admission.builders import container, pod

GOOD = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
GOOD_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def made(context: Document | None = None, pod_context: Document | None = None, **spec: Any) -> Document:
    one = container(securityContext={**GOOD, **(context or {})})
    return pod(containers=[one], securityContext={**GOOD_POD, **(pod_context or {})}, **spec)


PLAIN = (
    'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)


@pytest.mark.parametrize(
    ("one", "minor", "expected"),
    [
        pytest.param(made(), LATEST, "", id="a good pod"),
        pytest.param(pod(), LATEST, PLAIN, id="a plain pod says too little"),
        pytest.param(pod(), 999, PLAIN, id="a version that nobody knows yet is the last one"),
        pytest.param(
            pod(os={"name": "windows"}),
            LATEST,
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
            id="what means nothing on Windows is not asked there",
        ),
        pytest.param(
            made({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "CHOWN"]}}),
            LATEST,
            'unrestricted capabilities (container "c" must not include "CHOWN" in securityContext.capabilities.add)',
            id="capabilities",
        ),
        pytest.param(
            made(volumes=[{"name": "n", "nfs": {}}, {"name": "h", "hostPath": {}}, {"name": "s", "secret": {}}]),
            LATEST,
            'restricted volume types (volumes "n", "h" use restricted volume types "hostPath", "nfs")',
            id="volumes",
        ),
        pytest.param(
            made({"runAsNonRoot": False}, {"runAsNonRoot": False}),
            LATEST,
            'runAsNonRoot != true (pod and container "c" must not set securityContext.runAsNonRoot=false)',
            id="root on purpose",
        ),
        pytest.param(
            made({"runAsUser": 0}, {"runAsUser": 0}),
            LATEST,
            'runAsUser=0 (pod and container "c" must not set runAsUser=0)',
            id="root by number",
        ),
        pytest.param(
            made({"runAsUser": 0, "runAsNonRoot": False}, hostUsers=False), LATEST, "", id="root in a user namespace"
        ),
        pytest.param(
            made({"seccompProfile": {"type": "Unconfined"}}),
            LATEST,
            'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
            id="no seccomp",
        ),
        pytest.param(
            pod(),
            8,
            'allowPrivilegeEscalation != false (container "c" must set '
            "securityContext.allowPrivilegeEscalation=false), "
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
            id="an old version asks less",
        ),
    ],
)
def test_restricted(one: Document, minor: int, expected: str) -> None:
    assert text_of(violations_of(Level(RESTRICTED, minor), one["metadata"], one["spec"])) == expected
