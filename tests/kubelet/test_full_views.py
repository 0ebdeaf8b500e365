"""Decoding pods for the process runtime."""

from __future__ import annotations

from mooring.api.decode import decode_as
from mooring.kubelet.full_views import ConfigMap, FullContainer, FullPod, FullProbe, Secret
from mooring.kubelet.views import KubeletPod
from tests.kubelet.full_pods import whole
from tests.kubelet.harness import container, pod


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
