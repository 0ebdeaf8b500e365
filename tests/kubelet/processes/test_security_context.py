"""Security contexts: identities, and what cannot be honoured.

Ranges of user ids: no two pods of this machine have the same one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mooring.kubelet.processes import security_context
from mooring.kubelet.processes.security_context import (
    CAPABILITIES,
    DEFAULT_CAPABILITIES,
    FIRST_ID,
    NON_ROOT,
    RANGE_SIZE,
    RANGES_MAX,
    HostCapabilities,
    NoRangeError,
    PodUsers,
    ProcessIdentity,
    SecurityError,
    id_map,
    identity_of,
)
from mooring.kubelet.processes.shim.sandbox import NONE, ROOT, USER_NAMESPACE
from tests.kubelet.harness import pod_with

SEPARATE = HostCapabilities(0, 0, ROOT, has_pid_namespaces=True, has_separate_users=True)
AS_ROOT = HostCapabilities(0, 0, ROOT, has_pid_namespaces=True)
NAMESPACES = HostCapabilities(1000, 100, USER_NAMESPACE, has_pid_namespaces=True)
NOTHING = HostCapabilities(1000, 100, NONE)
DEFAULTS = tuple(sorted(CAPABILITIES[name] for name in DEFAULT_CAPABILITIES))


def identity(
    host: HostCapabilities, of_pod: dict[str, Any], of_container: dict[str, Any], spec: dict[str, Any] | None = None
) -> ProcessIdentity:
    pod = pod_with({"securityContext": of_pod, **(spec or {})}, securityContext=of_container)
    return identity_of(pod, pod.spec.containers[0], host)


@pytest.mark.parametrize(
    ("host", "of_pod", "of_container", "user", "group", "groups"),
    [
        pytest.param(SEPARATE, {}, {}, 0, 0, (), id="root of its own"),
        pytest.param(SEPARATE, {"runAsNonRoot": True}, {}, NON_ROOT, 0, (), id="not root"),
        pytest.param(SEPARATE, {"runAsUser": 7, "runAsGroup": 8}, {}, 7, 8, (), id="of the pod"),
        pytest.param(SEPARATE, {"runAsUser": 7}, {"runAsUser": 9, "runAsGroup": 9}, 9, 9, (), id="of the container"),
        pytest.param(
            SEPARATE, {"fsGroup": 5, "supplementalGroups": [6, 5]}, {}, 0, 0, (6, 5), id="groups, each of them once"
        ),
        pytest.param(AS_ROOT, {}, {}, 0, 0, (), id="root of the host"),
        pytest.param(AS_ROOT, {"runAsUser": 70_000}, {}, 70_000, 0, (), id="any user of the host"),
        pytest.param(NAMESPACES, {}, {}, 1000, 100, (), id="as mooring"),
        pytest.param(NAMESPACES, {"runAsUser": 0, "fsGroup": 5}, {}, 0, 5, (), id="one id of any number"),
        pytest.param(NOTHING, {"runAsNonRoot": True}, {}, 1000, 100, (), id="not root already"),
        pytest.param(NOTHING, {"runAsUser": 1000, "runAsGroup": 100}, {}, 1000, 100, (), id="whom it is anyway"),
    ],
)
def test_identities(
    host: HostCapabilities,
    of_pod: dict[str, Any],
    of_container: dict[str, Any],
    user: int,
    group: int,
    groups: tuple[int, ...],
) -> None:
    found = identity(host, of_pod, of_container)
    assert (found.user, found.group, found.groups) == (user, group, groups)
    assert found.has_user_namespace is host.has_separate_users


@pytest.mark.parametrize(
    ("host", "of_container", "kept"),
    [
        pytest.param(SEPARATE, {}, DEFAULTS, id="the defaults of containerd"),
        pytest.param(SEPARATE, {"drop": ["ALL"]}, (), id="none"),
        pytest.param(SEPARATE, {"drop": ["ALL"], "add": ["CHOWN", "kill"]}, (0, 5), id="two"),
        pytest.param(SEPARATE, {"drop": ["CHOWN"]}, DEFAULTS[1:], id="all but one"),
        pytest.param(AS_ROOT, {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, (10,), id="on the host"),
        pytest.param(AS_ROOT, {"add": ["ALL"]}, tuple(range(len(CAPABILITIES))), id="all of the host"),
        pytest.param(NOTHING, {"drop": ["ALL"]}, None, id="a user has none"),
        pytest.param(HostCapabilities(0, 0), {}, None, id="those of root, who may not be allowed to drop any"),
        pytest.param(HostCapabilities(0, 0), {"drop": ["ALL"]}, (), id="unless the container asks for it"),
    ],
)
def test_capabilities(host: HostCapabilities, of_container: dict[str, Any], kept: tuple[int, ...] | None) -> None:
    assert identity(host, {}, {"capabilities": of_container}).capabilities == kept


@pytest.mark.parametrize(
    ("host", "of_container", "is_forbidden"),
    [
        pytest.param(SEPARATE, {}, False, id="allowed by default"),
        pytest.param(SEPARATE, {"allowPrivilegeEscalation": False}, True, id="forbidden"),
        pytest.param(NOTHING, {"capabilities": {"drop": ["ALL"]}}, True, id="the only way to drop capabilities"),
    ],
)
def test_escalation(host: HostCapabilities, of_container: dict[str, Any], is_forbidden: bool) -> None:
    assert identity(host, {}, of_container).has_no_new_privileges is is_forbidden


def test_namespaces() -> None:
    assert identity(AS_ROOT, {}, {"privileged": True}).capabilities is None
    assert identity(AS_ROOT, {}, {}, {"hostUsers": False}).has_user_namespace
    for host in (AS_ROOT, NAMESPACES):
        shared = identity(host, {}, {}, {"hostPID": True, "hostIPC": True})
        assert (shared.has_pid_namespace, shared.has_ipc_namespace) == (False, False)
    own = identity(SEPARATE, {}, {})
    assert (own.has_pid_namespace, own.has_ipc_namespace) == (True, True)
    assert identity(SEPARATE, {}, {"readOnlyRootFilesystem": True}).is_root_read_only


@pytest.mark.parametrize(
    ("host", "of_pod", "of_container", "spec", "reason", "word"),
    [
        (SEPARATE, {}, {"privileged": True}, {}, "CreateContainerError", "privileged: true"),
        (NAMESPACES, {}, {"privileged": True}, {}, "CreateContainerError", "privileged: true"),
        (SEPARATE, {}, {}, {"hostPID": True}, "CreateContainerError", "hostPID"),
        (SEPARATE, {}, {}, {"hostIPC": True}, "CreateContainerError", "hostIPC"),
        (SEPARATE, {}, {}, {"hostUsers": True}, "CreateContainerError", "hostUsers: true"),
        (NOTHING, {}, {}, {"hostUsers": False}, "CreateContainerError", "hostUsers: false"),
        (SEPARATE, {}, {}, {"shareProcessNamespace": True}, "CreateContainerError", "shareProcessNamespace"),
        (NOTHING, {}, {"readOnlyRootFilesystem": True}, {}, "CreateContainerError", "readOnlyRootFilesystem"),
        (SEPARATE, {"seLinuxOptions": {"level": "s0"}}, {}, {}, "CreateContainerError", "seLinuxOptions"),
        (SEPARATE, {}, {"windowsOptions": {"hostProcess": True}}, {}, "CreateContainerError", "windowsOptions"),
        (SEPARATE, {"sysctls": [{"name": "a", "value": "1"}]}, {}, {}, "CreateContainerError", "sysctls"),
        (SEPARATE, {}, {"seccompProfile": {"type": "Localhost"}}, {}, "CreateContainerError", "seccompProfile"),
        (SEPARATE, {"appArmorProfile": {"type": "Localhost"}}, {}, {}, "CreateContainerError", "appArmorProfile"),
        (SEPARATE, {}, {"capabilities": {"add": ["NET_ADMIN"]}}, {}, "CreateContainerError", "NET_ADMIN"),
        (NOTHING, {}, {"capabilities": {"add": ["CHOWN"]}}, {}, "CreateContainerError", "CHOWN"),
        (SEPARATE, {}, {"capabilities": {"drop": ["FLYING"]}}, {}, "CreateContainerError", "unknown capability FLYING"),
        (SEPARATE, {"runAsUser": 70_000}, {}, {}, "CreateContainerConfigError", "runAsUser 70000"),
        (SEPARATE, {"runAsNonRoot": True}, {"runAsUser": 0}, {}, "CreateContainerConfigError", "non-root policy"),
        (AS_ROOT, {"runAsNonRoot": True, "runAsUser": 0}, {}, {}, "CreateContainerConfigError", "non-root policy"),
        (NOTHING, {"runAsUser": 7}, {}, {}, "CreateContainerConfigError", "runAsUser 7, and the process runtime"),
        (NOTHING, {"fsGroup": 7}, {}, {}, "CreateContainerConfigError", "7"),
        (NAMESPACES, {"runAsGroup": 6, "fsGroup": 7}, {}, {}, "CreateContainerConfigError", "one group only"),
        (NAMESPACES, {"supplementalGroups": [7]}, {}, {}, "CreateContainerConfigError", "one group only"),
    ],
)
def test_what_cannot_be_honoured_is_an_error(
    host: HostCapabilities,
    of_pod: dict[str, Any],
    of_container: dict[str, Any],
    spec: dict[str, Any],
    reason: str,
    word: str,
) -> None:
    with pytest.raises(SecurityError, match=word) as caught:
        identity(host, of_pod, of_container, spec)
    assert caught.value.reason == reason


def test_profiles_that_leave_it_to_the_runtime_are_accepted() -> None:
    profile = {"type": "RuntimeDefault"}
    assert identity(SEPARATE, {"seccompProfile": profile}, {"appArmorProfile": profile}).user == 0


def test_pods_have_ranges_of_their_own_also_of_different_kubelets(tmp_path: Path) -> None:
    first, second = PodUsers(tmp_path / "lock"), PodUsers(tmp_path / "lock")
    ids = [first.first_id("a"), first.first_id("b"), second.first_id("a"), first.first_id("a")]
    assert ids == [FIRST_ID + number * RANGE_SIZE for number in (0, 1, 2, 0)]
    first.release("a")
    first.release("unknown")
    assert second.first_id("c") == FIRST_ID
    first.close()
    assert second.first_id("d") == FIRST_ID + RANGE_SIZE
    second.close()


def test_there_is_a_last_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FIRST_ID + RANGES_MAX * RANGE_SIZE < 2**31
    monkeypatch.setattr(security_context, "RANGES_MAX", 1)
    users = PodUsers(tmp_path / "lock")
    users.first_id("a")
    with pytest.raises(NoRangeError, match="all 1 ranges"):
        users.first_id("b")
    users.close()


def test_the_maps_of_a_range() -> None:
    assert id_map(5) == {"uid_map": "0 5 65536", "gid_map": "0 5 65536"}
