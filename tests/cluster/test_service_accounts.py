"""`mooring up` from outside: pods have a service account, and a token and an authority to use it."""

from __future__ import annotations

import json
import signal
import ssl
from pathlib import Path
from typing import Any

import pytest

from mooring.cluster.kubernetes_service import advertised_address
from tests.cluster.running import Answer, Up, running
from tests.cluster.test_process_nodes import log, shell_pod, wait, wait_running
from tests.waiting import wait_until

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
READS_ITS_ACCOUNT = """
for name in token ca.crt namespace; do
    file=$(find "$MOORING_VOLUME" -name $name | head -n 1)
    echo "$name:"; cat "$file"; echo
done
echo end; sleep 600
"""


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "none"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def create_namespace(up: Up, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert up.ask("POST", "/api/v1/namespaces", body).code == 201


def create_pod(up: Up, namespace: str, body: dict[str, Any]) -> Answer:
    return up.ask("POST", f"/api/v1/namespaces/{namespace}/pods", body)


def token_volumes(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [volume for volume in spec.get("volumes", []) if volume["name"].startswith("kube-api-access-")]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_pods_of_a_new_namespace_have_an_account_and_a_token(tmp_path: Path, processes: str) -> None:
    with running(tmp_path, "--ephemeral", "--processes", processes) as up:
        # At once: the first namespaces have their accounts when the server answers.
        assert create_pod(up, "default", pod("first")).code == 201

        accounts = "/api/v1/namespaces/shop/serviceaccounts"
        create_namespace(up, "shop")
        answer = create_pod(up, "shop", pod("web"))
        if answer.code == 403:  # the controllers may take longer to start than the plugin waits
            wait(up, f"{accounts}/default", lambda found: found["kind"] == "ServiceAccount")
            answer = create_pod(up, "shop", pod("web"))
        spec = answer.document()["spec"]
        assert (answer.code, spec["serviceAccountName"], spec["serviceAccount"]) == (201, "default", "default")
        (volume,) = token_volumes(spec)
        assert volume["projected"] == {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                {
                    "downwardAPI": {
                        "items": [
                            {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}
                        ]
                    }
                },
            ],
        }
        (container,) = spec["containers"]
        assert container["volumeMounts"] == [{"mountPath": TOKEN_PATH, "name": volume["name"], "readOnly": True}]

        spec = create_pod(up, "shop", pod("silent", automountServiceAccountToken=False)).document()["spec"]
        assert (spec["serviceAccountName"], token_volumes(spec)) == ("default", [])
        assert "volumeMounts" not in spec["containers"][0]

        refused = create_pod(up, "shop", pod("stranger", serviceAccountName="stranger"))
        why = 'error looking up service account shop/stranger: serviceaccount "stranger" not found'
        assert (refused.code, refused.document()["message"]) == (403, f'pods "stranger" is forbidden: {why}')

        config_map = wait(
            up, "/api/v1/namespaces/shop/configmaps/kube-root-ca.crt", lambda found: found["kind"] == "ConfigMap"
        )
        assert list(config_map["data"]) == ["ca.crt"]
        ssl.create_default_context(cadata=config_map["data"]["ca.crt"])

        # A namespace takes everything that was created in it with it, and none of it comes back.
        assert up.ask("DELETE", "/api/v1/namespaces/shop").code == 200
        wait(up, "/api/v1/namespaces/shop", lambda found: found.get("code") == 404)


def test_the_kubernetes_service_leads_to_the_server(tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path / "data"), "--without", "scheduler,controllers,nodes")
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    for _ in range(2):  # the second server has another port
        with running(tmp_path, *options) as up:
            wanted = [advertised_address("")], up.port
            if not wanted[0][0]:  # a host without an address that an endpoint may name: the Service has none
                wait(up, "/api/v1/namespaces/default/services/kubernetes", lambda found: found["kind"] == "Service")
                assert up.ask("GET", path).code == 404
                assert up.end(signal.SIGTERM) == 0
                continue

            def is_right(found: Any, wanted: tuple[list[str], int] = wanted) -> bool:
                return bool(found.get("ports")) and found["ports"][0]["port"] == wanted[1]

            found = wait(up, path, is_right)
            assert [endpoint["addresses"] for endpoint in found["endpoints"]] == [wanted[0]]
            endpoints = wait(up, "/api/v1/namespaces/default/endpoints/kubernetes", lambda found: found.get("subsets"))
            assert endpoints["subsets"][0]["ports"] == [{"name": "https", "port": up.port, "protocol": "TCP"}]
            assert up.end(signal.SIGTERM) == 0


def test_a_process_reads_its_token_and_the_authority(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--runtime", "process") as up:
        # Where there are no mount namespaces, a variable says where the volume is.
        script = f"MOORING_VOLUME=$(env | sed -n 's/^MOORING_VOLUME_KUBE_API_ACCESS_[^=]*=//p')\n{READS_ITS_ACCOUNT}"
        answer = create_pod(up, "default", shell_pod("reader", script))
        assert answer.code == 201, answer.body
        wait_running(up, "reader")
        wait_until(lambda: "end\n" in log(up, "reader"), each_s=0.1, why=lambda: log(up, "reader"))
        said = log(up, "reader")
        token = said.partition("token:\n")[2].partition("\n")[0]
        authority = said.partition("ca.crt:\n")[2].partition("\nnamespace:")[0]
        assert said.partition("namespace:\n")[2].partition("\n")[0] == "default"
        ssl.create_default_context(cadata=authority)

        # The token is that of the account, and says for which pod it was issued.
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = up.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).document()["status"]
        assert status["authenticated"] is True, json.dumps(status)
        assert status["user"]["username"] == "system:serviceaccount:default:default"
        assert status["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["reader"]
        assert up.ask("GET", "/api/v1/namespaces/default/pods", token=token).code == 403


def test_without_controllers_pods_need_no_account(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--without", "scheduler,controllers") as up:
        spec = create_pod(up, "default", pod("p")).document()["spec"]
        assert "serviceAccountName" not in spec
        assert "volumes" not in spec


def test_without_controllers_and_with_every_plugin_pods_are_rejected(tmp_path: Path) -> None:
    flags = ("--without", "scheduler,controllers", "--disable-admission-plugins", "")
    with running(tmp_path, "--ephemeral", *flags) as up:
        refused = create_pod(up, "default", pod("p"))
        why = 'error looking up service account default/default: serviceaccount "default" not found'
        assert (refused.code, refused.document()["message"]) == (403, f'pods "p" is forbidden: {why}')
