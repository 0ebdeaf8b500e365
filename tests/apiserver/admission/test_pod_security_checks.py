"""Checks of Pod Security Standards: the baseline level and the restricted level."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.admission.pod_security import (
    BASELINE,
    LATEST,
    RESTRICTED,
    PodSecurityLevel,
    text_of,
    violations_of,
)
from tests.apiserver.admission.builders import container, pod


def secured(name: str = "c", **context: Any) -> Document:
    return container(name, securityContext=context)


def annotated(key: str, value: str) -> Document:
    made = pod()
    made["metadata"]["annotations"] = {key: value}
    return made


@pytest.mark.parametrize(
    ("made", "minor", "expected"),
    [
        pytest.param(pod(), LATEST, "", id="a plain pod"),
        pytest.param(
            pod(containers=[secured(privileged=True)]),
            LATEST,
            'privileged (container "c" must not set securityContext.privileged=true)',
            id="privileged",
        ),
        pytest.param(
            pod(hostNetwork=True, hostPID=True, hostIPC=True),
            LATEST,
            "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
            id="host namespaces",
        ),
        pytest.param(
            pod(containers=[container(ports=[{"hostPort": 80}, {"hostPort": 443}, {"containerPort": 1}])]),
            LATEST,
            'hostPort (container "c" uses hostPorts 443, 80)',
            id="host ports",
        ),
        pytest.param(
            pod(volumes=[{"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "emptyDir": {}}]),
            LATEST,
            'hostPath volumes (volume "a")',
            id="host paths",
        ),
        pytest.param(
            pod(containers=[secured("a", capabilities={"add": ["SYS_ADMIN", "CHOWN"]}), secured("b")]),
            LATEST,
            'non-default capabilities (container "a" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
            id="capabilities",
        ),
        pytest.param(
            pod(containers=[secured(appArmorProfile={"type": "Unconfined"})], securityContext={"appArmorProfile": {}}),
            LATEST,
            'forbidden AppArmor profiles (pod and container "c" must not set AppArmor profile type to "", '
            '"Unconfined")',
            id="AppArmor disabled",
        ),
        pytest.param(
            annotated("container.apparmor.security.beta.kubernetes.io/c", "unconfined"),
            LATEST,
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
            '"container.apparmor.security.beta.kubernetes.io/c="unconfined"")',
            id="AppArmor disabled by annotation",
        ),
        pytest.param(
            annotated("container.apparmor.security.beta.kubernetes.io/c", "localhost/x"),
            LATEST,
            "",
            id="a localhost profile",
        ),
        pytest.param(
            pod(containers=[secured(seLinuxOptions={"type": "x", "user": "u", "role": "r"})]),
            LATEST,
            'seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "x"; '
            "user may not be set; role may not be set)",
            id="SELinux",
        ),
        pytest.param(
            pod(containers=[secured(seLinuxOptions={"type": "container_engine_t"})]),
            30,
            'seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "container_engine_t")',
            id="a type not allowed in older versions",
        ),
        pytest.param(
            pod(containers=[secured(seccompProfile={"type": "Unconfined"})]),
            LATEST,
            'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
            id="seccomp disabled",
        ),
        pytest.param(
            annotated("seccomp.security.alpha.kubernetes.io/pod", "unconfined"),
            18,
            'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")',
            id="seccomp disabled by annotation",
        ),
        pytest.param(
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}),
            31,
            "forbidden sysctls (kernel.msgmax, net.ipv4.tcp_rmem)",
            id="sysctls",
        ),
        pytest.param(
            pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}), 32, "", id="a sysctl allowed since 1.32"
        ),
        pytest.param(
            pod(containers=[secured(procMount="Unmasked")]),
            LATEST,
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
            id="unmasked proc",
        ),
        pytest.param(
            pod(containers=[secured(procMount="Unmasked")], hostUsers=False),
            LATEST,
            "",
            id="unmasked proc in a user namespace",
        ),
        pytest.param(
            pod(
                containers=[secured(windowsOptions={"hostProcess": True})],
                securityContext={"windowsOptions": {"hostProcess": True}},
            ),
            LATEST,
            'hostProcess (pod and container "c" must not set securityContext.windowsOptions.hostProcess=true)',
            id="host processes",
        ),
        pytest.param(
            pod(
                containers=[
                    container("b", livenessProbe={"httpGet": {"host": "h"}}),
                    container("a", lifecycle={"preStop": {"tcpSocket": {"host": "g"}}}),
                ]
            ),
            LATEST,
            'probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "g", "h")',
            id="probe hosts",
        ),
        pytest.param(
            pod(containers=[container(livenessProbe={"httpGet": {"host": "h"}})]), 33, "", id="probe hosts before 1.34"
        ),
    ],
)
def test_baseline_violations(made: Document, minor: int, expected: str) -> None:
    assert text_of(violations_of(PodSecurityLevel(BASELINE, minor), made["metadata"], made["spec"])) == expected


RESTRICTED_CONTEXT = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
RESTRICTED_POD_CONTEXT = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def made(context: Document | None = None, pod_context: Document | None = None, **spec: Any) -> Document:
    one = container(securityContext={**RESTRICTED_CONTEXT, **(context or {})})
    return pod(containers=[one], securityContext={**RESTRICTED_POD_CONTEXT, **(pod_context or {})}, **spec)


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
        pytest.param(made(), LATEST, "", id="a restricted pod"),
        pytest.param(pod(), LATEST, PLAIN, id="a plain pod"),
        pytest.param(pod(), 999, PLAIN, id="an unknown version is treated as the latest"),
        pytest.param(
            pod(os={"name": "windows"}),
            LATEST,
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
            id="Linux fields are not required on Windows",
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
            id="runAsNonRoot false",
        ),
        pytest.param(
            made({"runAsUser": 0}, {"runAsUser": 0}),
            LATEST,
            'runAsUser=0 (pod and container "c" must not set runAsUser=0)',
            id="user 0",
        ),
        pytest.param(
            made({"runAsUser": 0, "runAsNonRoot": False}, hostUsers=False), LATEST, "", id="root in a user namespace"
        ),
        pytest.param(
            made({"seccompProfile": {"type": "Unconfined"}}),
            LATEST,
            'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
            id="seccomp disabled",
        ),
        pytest.param(
            pod(),
            8,
            'allowPrivilegeEscalation != false (container "c" must set '
            "securityContext.allowPrivilegeEscalation=false), "
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
            id="an old version has fewer checks",
        ),
    ],
)
def test_restricted_violations(one: Document, minor: int, expected: str) -> None:
    assert text_of(violations_of(PodSecurityLevel(RESTRICTED, minor), one["metadata"], one["spec"])) == expected
