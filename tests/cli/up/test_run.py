"""`mooring up` as a process: start, end, errors."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.cli.terminal import wrapped
from mooring.cli.up.run import FAILURES_SHOWN_MAX, clone_lines, commands_to_try
from mooring.cluster.clone import CloneReport
from tests.cluster.running import ADMIN_TOKEN, LIMITED_TOKEN, WITHOUT_OTHERS, Answer, Up, command, running
from tests.waiting import LIMIT_S, wait_until

NOTHING = "cloned 0 nodes, 0 pods, 0 other objects in 4.0 s"


@pytest.mark.parametrize(
    ("report", "lines"),
    [
        pytest.param(
            CloneReport(
                cloned=Counter(Node=1_200, Pod=3_400, Deployment=1),
                pods=Counter(bound=3_380, pending=20),
                nodes_not_ready=2,
            ),
            ["cloned 1,200 nodes (2 not ready), 3,400 pods (3,380 bound, 20 pending), 1 other object in 4.0 s"],
            id="all is well",
        ),
        pytest.param(
            CloneReport(added=[f"Namespace n{number}" for number in range(7)], ownerless=Counter(Pod=3)),
            [
                NOTHING,
                "  added, as the dump names but does not contain them: "
                "Namespace n0, Namespace n1, Namespace n2, Namespace n3, Namespace n4 and 2 more",
                "  without their owners, which are not in the dump: 3 Pod",
            ],
            id="a partial dump",
        ),
        pytest.param(
            CloneReport(
                left_out={"this API server has no such kind": Counter(Ingress=3, Event=12)}, failures=["Pod a: no"]
            ),
            [
                NOTHING,
                "  not taken over: 12 Event, 3 Ingress (this API server has no such kind)",
                "  not taken over: Pod a: no",
            ],
            id="not everything is taken over",
        ),
        pytest.param(
            CloneReport(failures=["Pod a: no"] * (FAILURES_SHOWN_MAX + 5)),
            [NOTHING, *["  not taken over: Pod a: no"] * FAILURES_SHOWN_MAX, "  not taken over: 5 more"],
            id="many failures",
        ),
    ],
)
def test_lines(report: CloneReport, lines: list[str]) -> None:
    assert list(clone_lines(report, 4.0)) == lines


def test_a_name_of_the_dump_does_not_control_the_terminal() -> None:
    *_, line = clone_lines(CloneReport(failures=["Pod default/a\x1b[2Jb: is invalid"]), 4.0)
    assert line == "  not taken over: Pod default/a[2Jb: is invalid"


def test_a_narrow_terminal() -> None:
    assert wrapped("  not taken over: 12 Event, 3 Ingress (no such kind)", 30, indent=0, hanging=4) == [
        "  not taken over: 12 Event, 3",
        "    Ingress (no such kind)",
    ]


# ------------------------------------------------------------------------------------------------------ coming up


def test_it_is_ready_when_it_prints_its_address_and_anonymous_users_may_only_read_health(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", *WITHOUT_OTHERS) as up:
        for path in ("/readyz", "/livez", "/healthz"):
            assert (up.ask("GET", path, token="").code, up.ask("GET", path, token="").body) == (200, b"ok")
        assert up.ask("GET", "/version", token="").document()["gitVersion"].startswith("v1.36")
        for path in ("/", "/api", "/apis", "/metrics", "/openapi/v2", "/api/v1/namespaces", "/versions"):
            assert up.ask("GET", path, token="").code == 401, path
        assert up.ask("GET", "/livez", token="nobody-has-this-one").code == 401
        assert up.kubeconfig.stat().st_mode & 0o077 == 0


def test_its_nodes_are_registered_when_it_says_where_it_is(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--nodes", "200", "--without", "scheduler,controllers") as up:
        assert len(up.ask("GET", "/api/v1/nodes").document()["items"]) == 200


def test_what_only_few_need_is_not_read_in_before_it_is_ready() -> None:
    program = (
        "import sys\n"
        "from mooring.cli.up import run\n"
        "late = ('numpy', 'rich', 'mooring.api.cel', 'mooring.scheduler', 'mooring.store.etcd', 'mooring.kubelet')\n"
        "print(*(name for name in late if name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_anonymous_users_have_no_other_permissions(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--anonymous-auth", *WITHOUT_OTHERS) as up:
        assert up.ask("GET", "/readyz", token="").code == 200
        for path in ("/", "/api", "/metrics", "/api/v1/namespaces", "/api/v1/secrets"):
            refused = up.ask("GET", path, token="")
            assert (refused.code, refused.document()["reason"]) == (403, "Forbidden"), path


def test_a_plain_http_client_gets_an_answer(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", *WITHOUT_OTHERS) as up:
        with socket.create_connection(("127.0.0.1", up.port), LIMIT_S) as plain:
            plain.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
            assert not plain.recv(4_096).startswith(b"HTTP/1.1 200")
        assert up.ask("GET", "/livez").code == 200
        assert "Traceback" not in up.log()


def test_nodes_keep_leases_of_the_requested_duration(tmp_path: Path) -> None:
    flags = ("--nodes", "1", "--node-lease-duration-seconds", "4", "--without", "scheduler,controllers")
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0"
    with running(tmp_path, "--ephemeral", *flags) as up:
        wait_until(lambda: up.ask("GET", path).code == 200)
        assert up.ask("GET", path).document()["spec"]["leaseDurationSeconds"] == 4


def test_pods_follow_the_stages_of_a_file(tmp_path: Path) -> None:
    stages = tmp_path / "stages.yaml"
    ends = "{name: ends, state: terminated, exitCode: 7}"
    stages.write_text(
        f"stageSets: [{{name: short, match: {{labels: {{app: short}}}}, stages: [{ends}]}}]", encoding="utf-8"
    )
    spec = {"nodeName": "node-0", "restartPolicy": "Never", "containers": [{"name": "c", "image": "a"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": "short"}}, "spec": spec}
    flags = ("--nodes", "1", "--stages", str(stages), "--without", "scheduler,controllers")
    with running(tmp_path, "--ephemeral", *flags) as up:
        assert up.ask("POST", "/api/v1/namespaces/default/pods", pod).code == 201

        def status() -> dict[str, Any]:
            found: dict[str, Any] = up.ask("GET", "/api/v1/namespaces/default/pods/p").document()["status"]
            return found

        wait_until(lambda: status()["phase"] == "Failed", why=status)
        assert status()["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7


def test_neither_tokens_nor_secrets_are_logged(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--verbose", *WITHOUT_OTHERS) as up:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "very-hidden"}}
        assert up.ask("POST", "/api/v1/namespaces/default/secrets", secret).code == 201
        assert up.ask("GET", "/api/v1/namespaces/default/secrets/s").code == 200
        assert up.ask("POST", "/api/v1/namespaces/default/secrets", {**secret, "type": 5}).code == 400
        assert up.ask("GET", "/api/v1/pods", token="a-wrong-token").code == 401
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": LIMITED_TOKEN}}
        answer = up.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert answer.document()["status"]["authenticated"] is True
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        account = "/api/v1/namespaces/default/serviceaccounts"
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sailor"}}
        assert up.ask("POST", account, body).code == 201
        issued: Answer = up.ask("POST", f"{account}/sailor/token", asked)
        assert issued.code == 201
        token = issued.document()["status"]["token"]
        assert up.ask("GET", f"/api/v1/pods?token={ADMIN_TOKEN}", token=token).code == 403
        assert up.ask("GET", "/api/v1/pods", headers={"X Y": ADMIN_TOKEN}).code == 400
        assert up.end() == 0
        log = up.log()
        for hidden in (ADMIN_TOKEN, LIMITED_TOKEN, "a-wrong-token", "very-hidden", "dmVyeS1oaWRkZW4", token):
            assert hidden not in log


# ---------------------------------------------------------------------------------------------------- kubeconfig


@contextmanager
def ephemeral(temporary: Path) -> Iterator[Up]:
    """A cluster in memory that chooses the place of its kubeconfig itself."""
    words = command("--port", "0", "--ephemeral", *WITHOUT_OTHERS)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        up = Up(process, "", Path(), temporary / "no log")
        try:
            for line in up.lines("Ctrl-C"):
                name, _, value = line.strip().partition("   ")
                if name == "API server":
                    up.url = value.strip()
                elif line.startswith("  export"):
                    shown = subprocess.run(["sh", "-c", f"{line}; printenv KUBECONFIG"], capture_output=True, text=True)
                    up.kubeconfig = Path(shown.stdout.strip())
            yield up
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def test_each_ephemeral_cluster_has_a_private_kubeconfig_until_it_ends(tmp_path: Path) -> None:
    temporary = tmp_path / "a folder's name"
    temporary.mkdir()
    with ephemeral(temporary) as one, ephemeral(temporary) as other:
        assert one.kubeconfig != other.kubeconfig
        for up in (one, other):
            server = yaml.safe_load(up.kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"]
            assert server == up.url
            assert up.ask("GET", "/api/v1/namespaces").code == 200
            folder = up.kubeconfig.parent.stat()
            assert (stat.S_IMODE(folder.st_mode), folder.st_uid) == (0o700, os.getuid())
    assert list(temporary.iterdir()) == []


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ended = subprocess.run(
            command("--port", str(other.getsockname()[1]), "--ephemeral"),
            env={**os.environ, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "commands"),
    [
        pytest.param("/a/k", ["export KUBECONFIG=/a/k", "kubectl get nodes,pods -A"], id="plain"),
        pytest.param("/a b/k", ["export KUBECONFIG='/a b/k'", "kubectl get nodes,pods -A"], id="with a space"),
        pytest.param(
            "/it's/$k",
            ["export KUBECONFIG='/it'\"'\"'s/$k'", "kubectl get nodes,pods -A"],
            id="with what a shell would read",
        ),
        pytest.param(
            "/a:b/k", ["kubectl --kubeconfig /a:b/k get nodes,pods -A"], id="with what separates files in KUBECONFIG"
        ),
    ],
)
def test_the_commands_to_try_work_as_printed(path: str, commands: list[str]) -> None:
    assert commands_to_try(path) == commands


# ---------------------------------------------------------------------------------------------- objects from files

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example}
spec:
  group: sea.example
  scope: Namespaced
  names: {kind: Boat, plural: boats}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: sea.example/v1
kind: Boat
metadata: {name: anna}
---
apiVersion: sea.example/v1
kind: Ship
metadata: {name: berta}
"""
PRINTED = {
    "apiVersion": "v1",
    "kind": "ConfigMapList",
    "items": [{"metadata": {"name": "c", "uid": "u", "resourceVersion": "3", "creationTimestamp": None}}],
}


def test_objects_are_taken_as_kubectl_takes_and_prints_them(tmp_path: Path) -> None:
    folder = tmp_path / "manifests" / "below"
    folder.mkdir(parents=True)
    (folder / "a.yaml").write_text(DEFINITION, encoding="utf-8")
    (folder / "b.json").write_text(json.dumps(PRINTED), encoding="utf-8")
    (folder / "c.txt").write_text("not a manifest", encoding="utf-8")
    listed = "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n"
    listed += "- {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: nowhere}}\n"
    files = ("-f", str(tmp_path / "manifests"), "-f", "-")
    with running(tmp_path, "--ephemeral", *WITHOUT_OTHERS, *files, stdin=listed) as up:
        up.lines("Ctrl-C")
        assert up.lines("secret/s") == [
            "customresourcedefinition/boats.sea.example created",
            "boat/anna created",
            f"{folder}/a.yaml:16: ship/berta was not created: "
            'no kind "Ship" is registered for version "sea.example/v1"',
            "configmap/c created",
            "namespace/shop created",
            '<stdin>:5: secret/s was not created: namespaces "nowhere" not found',
        ]
        assert up.ask("GET", "/apis/sea.example/v1/namespaces/default/boats/anna").code == 200


def test_the_harbour_of_the_examples_lives(tmp_path: Path) -> None:
    harbour = Path(__file__).parents[3] / "examples/clusters/harbour.yaml"
    with running(tmp_path, "--ephemeral", "-f", str(harbour)) as up:
        up.lines("pod/tanker created")
        assert not [line for line in up.log().splitlines() if "was not created" in line]

        def nodes() -> dict[str, tuple[str, str]]:
            found = up.ask("GET", "/api/v1/nodes").document()["items"]
            ready = {
                node["metadata"]["name"]: (condition["status"], node["status"]["nodeInfo"]["kubeletVersion"])
                for node in found
                for condition in node["status"].get("conditions", ())
                if condition["type"] == "Ready"
            }
            return ready if len(ready) == 7 and set(ready.values()) == {("True", "v1.36.4")} else {}

        wait_until(nodes, why=up.log)

        def waiting() -> list[str]:
            pods = up.ask("GET", "/api/v1/namespaces/harbour/pods").document()["items"]
            return sorted(pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") != "Running")

        # As `mooring explain` says of them: coastguard evicts a tug, and three pods fit nowhere.
        wait_until(lambda: waiting() == ["beacon-4", "gantry-2", "tanker"], why=waiting)
        assert any("Insufficient memory" in line for line in up.lines("pod/tanker is not ready"))


# --------------------------------------------------------------------------------------------------------- clones

CLONED = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, uid: n1}
  status: {allocatable: {cpu: "4", pods: "9"}, capacity: {cpu: "4", pods: "9"}}
- {apiVersion: v1, kind: Event, metadata: {name: e, uid: e}}
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: shop, uid: p}
  spec: {nodeName: n1, containers: [{name: c, image: i}]}
"""


def test_a_dump_is_cloned_into_an_empty_cluster_only(tmp_path: Path) -> None:
    data = ("--data-dir", str(tmp_path / "data"))
    with running(tmp_path, *data, "--from", "-", "--without", "scheduler,controllers", stdin=CLONED) as up:
        assert [re.sub(r"in .* s$", "in 1 s", line) for line in up.printed[:3]] == [
            "cloned 1 node, 1 pod (1 bound), 0 other objects in 1 s",
            "  added, as the dump names but does not contain them: Namespace shop",
            "  not taken over: 1 Event (the clone writes its own)",
        ]
        path = "/api/v1/namespaces/shop/pods/p"
        wait_until(lambda: up.ask("GET", path).document()["status"]["phase"] == "Running")
        assert up.ask("GET", path).document()["spec"]["nodeName"] == "n1"
        assert up.end() == 0
    (tmp_path / "dump.yaml").write_text(CLONED, encoding="utf-8")
    code, said = refused("--port", "0", *data, "--from", str(tmp_path / "dump.yaml"))
    assert (code, len(said)) == (1, 1)
    assert "already holds a cluster" in said[0]
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
    short = ("--node-lease-duration-seconds", "4")
    with running(tmp_path, *data, *short, "--without", "scheduler,controllers") as up:
        before = up.ask("GET", lease).document()["spec"]["renewTime"]
        # The next start runs the cloned nodes again.
        wait_until(lambda: up.ask("GET", lease).document()["spec"]["renewTime"] != before)


# --------------------------------------------------------------------------------------------------------- ending


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_order(number: signal.Signals, tmp_path: Path) -> None:
    with running(tmp_path, "--data-dir", str(tmp_path / "data"), *WITHOUT_OTHERS) as up:
        connection = http.client.HTTPSConnection("127.0.0.1", up.port, timeout=LIMIT_S, context=up.tls())
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        connection.request("GET", "/api/v1/pods?watch=1", headers=headers)
        watch = connection.getresponse()
        idle = http.client.HTTPSConnection("127.0.0.1", up.port, timeout=LIMIT_S, context=up.tls())
        idle.request("GET", "/livez", headers=headers)
        idle.getresponse().read()
        assert up.end(number) == 0
        # To its last chunk: a watch that is cut off in the middle would raise IncompleteRead.
        assert watch.read() == b""
        assert "Traceback" not in up.log()
        watch.close()
        connection.close()
        idle.close()


def test_the_second_time_it_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with running(tmp_path, "--ephemeral", *WITHOUT_OTHERS) as up:
        # A request that never ends makes the first time take a while.
        raw = up.tls().wrap_socket(socket.create_connection(("127.0.0.1", up.port)), server_hostname="127.0.0.1")
        head = f"Host: a\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nContent-Length: 10\r\n\r\n"
        raw.sendall(f"POST /api/v1/namespaces HTTP/1.1\r\n{head}".encode())
        wait_until(lambda: up.metric("apiserver_current_inflight_requests") >= 1)
        up.process.send_signal(signal.SIGINT)
        wait_until(lambda: "stopping" in up.log(), each_s=0.001)
        assert up.end(signal.SIGINT) == -signal.SIGINT
        assert "Traceback" not in up.log()
        raw.close()
    assert list(temporary.iterdir()) == [], "keys and kubeconfig are removed"


def test_it_ends_although_its_output_is_not_read(tmp_path: Path) -> None:
    words = command("--port", "0", "--ephemeral", "--kubeconfig", str(tmp_path / "kubeconfig"), *WITHOUT_OTHERS)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT_S)


# -------------------------------------------------------------------------------------------------- not coming up


def refused(*options: str) -> tuple[int, list[str]]:
    """The exit code and what was said."""
    ended = subprocess.run(command(*options), capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert "Traceback" not in ended.stderr, ended.stderr
    assert ended.stdout == "", "nothing was announced"
    return ended.returncode, ended.stderr.strip().splitlines()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(("--frob",), "No such option", id="a flag that does not exist"),
        pytest.param(("--port", "99999"), "99999 is not in the range", id="a port that does not exist"),
        pytest.param(("--nodes", "many"), "'many' is not a valid", id="a number that is none"),
        pytest.param(("--ephemeral", "--data-dir", "x"), "contradict each other", id="two places at once"),
        pytest.param(("--ephemeral", "--without", "sails"), "there is no such component", id="an unknown component"),
        pytest.param(("--ephemeral", "--token-auth-file", "/nowhere"), "does not exist", id="no token file"),
        pytest.param(("--store", "frob://a", "--port", "0"), "frob", id="a store that does not exist"),
        pytest.param(
            ("--controllers", "nosuch"), "there is no controller 'nosuch'", id="a controller that does not exist"
        ),
        pytest.param(
            ("--node-monitor-period", "5"),
            "'--node-monitor-period': time: missing unit in duration \"5\"",
            id="a period without unit",
        ),
        pytest.param(
            ("--node-lease-duration-seconds", "400"),
            "nodes renew their lease every 100 s, but --node-monitor-grace-period is 50 s; wanted less than 200",
            id="a lease that is renewed too late",
        ),
        pytest.param(("-f", "/nowhere"), "check the path given to -f", id="a manifest that does not exist"),
        pytest.param(("--from", "/nowhere"), "check the path given to --from", id="a dump that does not exist"),
        pytest.param(("-f", "-", "--from", "-"), "standard input can be read once", id="standard input twice"),
        pytest.param(
            ("--from", "-", "--runtime", "process"), "cloned nodes are simulated", id="cloned nodes as this machine"
        ),
    ],
)
def test_bad_flags_are_said_in_words(options: tuple[str, ...], words: str) -> None:
    code, said = refused(*options)
    assert code != 0
    assert words in said[-1]


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        pytest.param(
            "profiles: [{plugins: {filter: {enabled: [{name: Nosuch}]}}}]", "Nosuch", id="a plugin that does not exist"
        ),
        pytest.param(
            "profile: []", 'config.yaml:3: strict decoding error: unknown field "profile"', id="a misspelt field"
        ),
    ],
)
def test_a_bad_scheduler_configuration_is_found_before_anything_starts(
    configuration: str, words: str, tmp_path: Path
) -> None:
    file, kubeconfig = tmp_path / "config.yaml", tmp_path / "kubeconfig"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    file.write_text(f"{head}{configuration}\n", encoding="utf-8")
    code, said = refused("--ephemeral", "--port", "0", "--config", str(file), "--kubeconfig", str(kubeconfig))
    assert (code, len(said)) == (2, 1), said
    assert words in said[0]
    assert not kubeconfig.exists()


def _file_for_a_directory(folder: Path) -> tuple[str, ...]:
    (folder / "file").write_text("", encoding="utf-8")
    return ("--port", "0", "--data-dir", str(folder / "file"))


def _unreadable_stages(folder: Path) -> tuple[str, ...]:
    (folder / "stages.yaml").write_text("stageSets: [{name: a, stages: []}]", encoding="utf-8")
    return ("--ephemeral", "--port", "0", "--stages", str(folder / "stages.yaml"))


def _unreadable_directory(folder: Path) -> tuple[str, ...]:
    return ("--port", "0", "--data-dir", "/proc/nowhere")


def _damaged_file(folder: Path) -> tuple[str, ...]:
    with running(folder, "--data-dir", str(folder / "data"), *WITHOUT_OTHERS) as up:
        assert up.end() == 0
    for path in (folder / "data" / "store").iterdir():
        if path.suffix in (".db", ".sqlite", ".sqlite3") or path.read_bytes()[:6] == b"SQLite":
            with open(path, "r+b") as file:
                file.seek(100)  # behind what says that it is ours
                file.write(b"\xa5" * 4_000)
    return ("--port", "0", "--data-dir", str(folder / "data"))


def _bad_token_file(folder: Path) -> tuple[str, ...]:
    (folder / "bad.csv").write_text("a,b\n", encoding="utf-8")
    return ("--ephemeral", "--port", "0", "--token-auth-file", str(folder / "bad.csv"))


def _token_file_that_is_no_text(folder: Path) -> tuple[str, ...]:
    (folder / "bad.csv").write_bytes(b"\xff\xfe\x00")
    return ("--ephemeral", "--port", "0", "--token-auth-file", str(folder / "bad.csv"))


def _kubeconfig_nowhere(folder: Path) -> tuple[str, ...]:
    return ("--ephemeral", "--port", "0", "--kubeconfig", "/proc/nowhere/kubeconfig")


def _kubeconfig_of_somebody_else(folder: Path) -> tuple[str, ...]:
    (folder / "theirs").write_text("clusters: [{name: theirs}]", encoding="utf-8")
    return ("--ephemeral", "--port", "0", "--kubeconfig", str(folder / "theirs"))


def _address_of_somebody_else(folder: Path) -> tuple[str, ...]:
    return ("--ephemeral", "--port", "0", "--bind-address", "192.0.2.1")


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        pytest.param(_file_for_a_directory, "file", id="a file where a directory should be"),
        pytest.param(_unreadable_stages, "a stage set needs at least one stage", id="a stage set without stages"),
        pytest.param(_unreadable_directory, "/proc/nowhere", id="a directory that cannot be written"),
        pytest.param(_damaged_file, "damaged", id="a damaged file"),
        pytest.param(_bad_token_file, "bad.csv", id="a bad token file"),
        pytest.param(_token_file_that_is_no_text, "bad.csv", id="a token file that is no text"),
        pytest.param(_kubeconfig_nowhere, "/proc/nowhere", id="a kubeconfig that cannot be written"),
        pytest.param(_kubeconfig_of_somebody_else, "--overwrite-kubeconfig", id="a kubeconfig of somebody else"),
        pytest.param(_address_of_somebody_else, "192.0.2.1", id="an address of somebody else"),
    ],
)
def test_bad_surroundings_are_said_in_one_line(
    prepare: Callable[[Path], tuple[str, ...]], words: str, tmp_path: Path
) -> None:
    options = prepare(tmp_path)
    if "--kubeconfig" not in options:
        options += ("--kubeconfig", str(tmp_path / "kubeconfig-of-another"))
    assert words in _refused_in_one_line(*options)


def test_a_port_in_use_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        kubeconfig = str(tmp_path / "kubeconfig")
        assert "in use" in _refused_in_one_line("--ephemeral", "--port", port, "--kubeconfig", kubeconfig)


def _refused_in_one_line(*options: str) -> str:
    code, said = refused(*options)
    assert code != 0
    assert len(said) == 1, said
    assert said[0].startswith("mooring: ")
    return said[0]


def test_a_second_process_on_the_same_directory_fails(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running(tmp_path, "--data-dir", data, *WITHOUT_OTHERS) as up:
        code, said = refused("--data-dir", data, "--port", "0", "--kubeconfig", str(tmp_path / "another"))
        assert (code, len(said)) == (1, 1)
        assert f"in use by process {up.process.pid}" in said[0]
        assert up.ask("GET", "/livez").code == 200


def test_a_pod_that_comes_right_after_readyz_is_placed_at_its_first_attempt(tmp_path: Path) -> None:
    """The nodes are ready before the server is: no pod meets a cluster without nodes, or with tainted ones."""
    with running(tmp_path, "--ephemeral", "--nodes", "50") as up:
        assert b"[+]nodes ok" in up.ask("GET", "/readyz?verbose", token="").body
        spec = {"containers": [{"name": "c", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        assert up.ask("POST", "/api/v1/namespaces/default/pods", pod).code == 201

        def decisions() -> list[dict[str, Any]]:
            answer = up.ask("GET", "/debug/decisions?pod=default/p")
            return list(answer.document()) if answer.code == 200 else []

        (decision,) = wait_until(decisions)
        assert (decision["result"], decision["attempt"]) == ("Success", 1)


def test_without_the_controller_of_taints_nodes_are_ready_with_them(tmp_path: Path) -> None:
    options = ("--ephemeral", "--nodes", "1", "--controllers", "*,-node-lifecycle-controller")
    with running(tmp_path, *options) as up:
        assert up.ask("GET", "/readyz", token="").code == 200
