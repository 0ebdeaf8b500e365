"""Decoding pods for simulated kubelets and for kubelets that run processes."""

from __future__ import annotations

from mooring.api.decode import decode_as
from mooring.api.resources import fit_filter_requests
from mooring.kubelet.views import ConfigMap, FullContainer, FullPod, FullProbe, KubeletPod, Secret
from tests.kubelet.harness import container, pod, whole


def test_a_whole_pod_is_a_pod_of_the_kubelet_with_whole_containers() -> None:
    one = whole(pod(containers=[container(command=["sleep", "1"])], initContainers=[container("first")]))

    assert isinstance(one, KubeletPod)
    assert [type(c) for c in (*one.spec.containers, *one.spec.init_containers)] == [FullContainer, FullContainer]
    assert one.spec.containers[0].command == ("sleep", "1")
    assert one.spec.enable_service_links


def test_a_probe_that_says_nothing_has_the_defaults_of_the_api() -> None:
    one = whole(pod(containers=[container(livenessProbe={"tcpSocket": {"port": "http"}})]))

    probe = one.spec.containers[0].liveness_probe

    assert probe is not None
    assert probe.tcp_socket is not None
    assert probe.tcp_socket.port == "http"
    assert FullProbe() == FullProbe(period_seconds=10, timeout_seconds=1, success_threshold=1, failure_threshold=3)


def test_binary_data_comes_as_bytes() -> None:
    assert decode_as(Secret, b'{"data": {"key": "aGVsbG8="}}').data == {"key": b"hello"}
    assert decode_as(ConfigMap, b'{"data": {"a": "b"}, "binaryData": {"c": "AP8="}}').binary_data == {"c": b"\x00\xff"}


def test_the_sources_of_volumes_are_known() -> None:
    volumes = [{"name": "all", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]

    one = whole(pod(volumes=volumes))

    projected = one.spec.volumes[0].projected
    assert projected is not None
    assert projected.sources[0].service_account_token is not None
    assert projected.sources[0].service_account_token.expiration_seconds == 3600
    assert isinstance(one, FullPod)


# --- Decoding pods for simulated kubelets ----------------------------------------------------------------------------


RAW = b"""{"metadata":{"name":"web","uid":"u","deletionGracePeriodSeconds":7},
"spec":{"restartPolicy":"Never","readinessGates":[{"conditionType":"lb"}],"containers":[{"name":"main",
"resources":{"requests":{"cpu":"1500m"}},"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In",
"values":[3]}}]}]},"status":{"podIP":"10.0.0.2","containerStatuses":[{"name":"main","restartCount":2,"started":true,
"lastState":{"terminated":{"exitCode":3,"containerID":"c"}},"state":{"running":{"startedAt":"t"}}}]}}"""


def test_a_pod_is_read() -> None:
    pod = decode_as(KubeletPod, RAW)
    (main,), (told,) = pod.spec.containers, pod.status.container_statuses
    assert pod.metadata.deletion_grace_period_seconds == 7
    assert (pod.spec.restart_policy, pod.spec.readiness_gates[0].condition_type) == ("Never", "lb")
    codes = main.restart_policy_rules[0].exit_codes
    assert codes is not None
    assert (codes.operator, codes.values) == ("In", (3,))
    assert pod.status.pod_ip == "10.0.0.2"
    assert told.last_state.terminated is not None
    assert (told.last_state.terminated.exit_code, told.last_state.terminated.container_id) == (3, "c")
    assert (told.restart_count, told.started) == (2, True)
    assert fit_filter_requests(pod) == {"cpu": 1500}
