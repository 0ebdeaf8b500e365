"""The control plane of a comparison, and the objects of a workload as requests to it.

The control plane is kube-apiserver on etcd, or `mooring up`, on loopback, without controllers. A workload of
`bench/workloads`, at a size, becomes requests, as bytes, in the order in which objects need each other.

1. The admission plugins ServiceAccount and TaintNodesByCondition are off: no controller creates accounts or removes
   the taint of new nodes.
2. All clients use the token of one administrator, whom API priority and fairness does not limit.
3. What a server assigns (uid, revision, time, managed fields, the status of a pod) is left out.
4. Victims end at once (`terminationGracePeriodSeconds: 0`), because no kubelet ends them.
5. A pod keeps its name in every round, so that both schedulers get the same pods.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from bench.client import request
from bench.machine import free_port
from bench.processes import Program, running, wait_ready, write_kubeconfig
from bench.scenario import Scenario
from bench.workload import Outcome, Size, Workload
from mooring.api.kinds import kind_named

TOKEN = "bench-token"
DISABLED = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"
KEY_BITS = 2048
VERSION_S_MAX = 30.0


class Binaries(NamedTuple):
    """What is compared on what. Without kube-apiserver, `mooring up` is the API server."""

    etcd: str
    kube_apiserver: str
    kube_scheduler: str


class ControlPlane(NamedTuple):
    """An API server that is ready."""

    port: int
    kubeconfig: Path
    api_server: Program
    store: Program | None


def version_of(binary: str) -> str:
    """The last word of the first line that `--version` prints. Raises `OSError` or `ValueError`."""
    done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=VERSION_S_MAX, check=False)
    words = done.stdout.split("\n", 1)[0].split()
    if done.returncode != 0 or not words:
        raise ValueError(f"{binary} --version ended with code {done.returncode}: {done.stderr.strip()[:200]!r}")
    return words[-1]


@contextmanager
def control_plane(binaries: Binaries, folder: Path) -> Iterator[ControlPlane]:
    """A new, empty cluster."""
    folder.mkdir()
    port = free_port()
    kubeconfig = write_kubeconfig(folder / "kubeconfig", port, TOKEN)
    with ExitStack() as stack:
        store: Program | None = None
        if binaries.kube_apiserver:
            client, peer = free_port(), free_port()
            store = stack.enter_context(running("etcd", _etcd(binaries.etcd, folder, client, peer), folder))
            command = _kube_apiserver(binaries.kube_apiserver, folder, port, client)
        else:
            command = [sys.executable, "-m", "mooring", "up", "--ephemeral", "--port", str(port), "--token", TOKEN]
            command += ["--kubeconfig", str(folder / "admin"), "--without", "scheduler,controllers,nodes", DISABLED]
        server = stack.enter_context(running("api server", command, folder))
        asyncio.run(wait_ready(server, port, TOKEN))
        yield ControlPlane(port, kubeconfig, server, store)


def _etcd(binary: str, folder: Path, client: int, peer: int) -> list[str]:
    url, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    return [
        *(binary, "--name=bench", f"--data-dir={folder / 'etcd'}", f"--initial-cluster=bench={peers}"),
        *(f"--listen-client-urls={url}", f"--advertise-client-urls={url}"),
        *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"),
    ]


def _kube_apiserver(binary: str, folder: Path, port: int, etcd: int) -> list[str]:
    tokens, key, public_key = folder / "tokens.csv", folder / "accounts.key", folder / "accounts.pub"
    tokens.write_text(f'{TOKEN},admin,1,"system:masters"\n', encoding="utf-8")
    private = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    public_key.write_bytes(private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return [
        *(binary, f"--etcd-servers=http://127.0.0.1:{etcd}", f"--cert-dir={folder / 'certificates'}"),
        *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={port}"),
        *("--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://bench"),
        *(f"--service-account-key-file={public_key}", f"--service-account-signing-key-file={key}"),
        *(f"--token-auth-file={tokens}", "--authorization-mode=RBAC", DISABLED),
    ]


# --- the objects of a workload --------------------------------------------------------------------------------


Json = dict[str, Any]

SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generateName", "ownerReferences")
PRIORITY_CLASSES = {"important": 1000}


class VersusPod(NamedTuple):
    """A pod of the workload: the requests that create and delete it."""

    key: str
    create: bytes
    delete: bytes
    outcome: Outcome

    @property
    def is_bound_in_the_end(self) -> bool:
        return self.outcome in ("placed", "preempts")


class VersusCluster(NamedTuple):
    """Everything that a comparison creates."""

    before: list[list[bytes]]
    """Requests for what is there before; each list needs the lists before it."""
    node_names: list[str]
    placed: list[VersusPod]
    warm_up: list[VersusPod]
    pods: list[VersusPod]


def cluster_of(workload: Workload, size: Size) -> VersusCluster:
    scenario = Scenario(workload, size)
    nodes = [msgspec.json.decode(item.raw) for item in scenario.nodes()]
    objects = [msgspec.json.decode(item.raw) for item in scenario.objects()]
    placed = list(islice(scenario.placed(), size.placed_count))
    measured = list(islice(scenario.measured(), size.warm_up + size.pods))
    companions = [msgspec.json.decode(item.raw) for pod in (*placed, *measured) for item in pod.companions]
    pods = [_pod(msgspec.json.decode(item.raw), item.outcome) for item in measured]
    existing = [_pod(msgspec.json.decode(item.raw), item.outcome) for item in placed]
    namespaces = [manifest for manifest in objects if manifest["kind"] == "Namespace"]
    needed = {pod.key.partition("/")[0] for pod in (*existing, *pods)} | {"shop"}
    needed -= {namespace["metadata"]["name"] for namespace in namespaces}
    namespaces += [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(needed - {"default"})
    ]
    others = [manifest for manifest in objects if manifest["kind"] != "Namespace"]
    return VersusCluster(
        before=[
            [_create(manifest) for manifest in (*namespaces, *_priority_classes())],
            [_create(manifest) for manifest in (*nodes, *others)],
            [_create(companion) for companion in companions],
            [pod.create for pod in existing],
        ],
        node_names=[node["metadata"]["name"] for node in nodes],
        placed=existing,
        warm_up=pods[: size.warm_up],
        pods=pods[size.warm_up :],
    )


def bindings(pods: Sequence[VersusPod], node_names: Sequence[str]) -> Iterator[bytes]:
    """Binds the pods to the nodes in turn, as a scheduler does, without looking."""
    for number, pod in enumerate(pods):
        namespace, _, name = pod.key.partition("/")
        target = {"apiVersion": "v1", "kind": "Node", "name": node_names[number % len(node_names)]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        yield request(TOKEN, "POST", path, msgspec.json.encode({**binding, "target": target}))


def _priority_classes() -> Iterator[Json]:
    for name, value in PRIORITY_CLASSES.items():
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }


def _pod(pod: Json, outcome: Outcome) -> VersusPod:
    pod.pop("status", None)
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    path = f"{_path(pod)}/{pod['metadata']['name']}"
    key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    return VersusPod(key, _create(pod), request(TOKEN, "DELETE", path), outcome)


def _create(manifest: Json) -> bytes:
    metadata = manifest["metadata"]
    for field in SERVER_FIELDS:
        metadata.pop(field, None)
    manifest.get("spec", {}).get("claimRef", {}).pop("uid", None)  # the server gives the claim another one
    if manifest["kind"] == "ReplicaSet":
        manifest["spec"].setdefault("template", _pod_template(manifest["spec"]["selector"]["matchLabels"]))
    return request(TOKEN, "POST", _path(manifest), msgspec.json.encode(manifest))


def _pod_template(labels: Json) -> Json:
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "main"}]}}


def _path(manifest: Json) -> str:
    kind = kind_named(manifest["apiVersion"], manifest["kind"])
    start = f"/apis/{kind.api_version}" if "/" in kind.api_version else f"/api/{kind.api_version}"
    namespace = f"/namespaces/{manifest['metadata']['namespace']}" if kind.is_namespaced else ""
    return f"{start}{namespace}/{kind.plural}"
