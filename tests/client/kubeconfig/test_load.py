"""Kubeconfig files: reading and merging as kubectl does; contexts, overrides, users, and errors."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from mooring.client.http.connection import REREAD_S, Connection, FileCredentials, StaticCredentials
from mooring.client.kubeconfig.entries import KubeconfigError, merged, read_kubeconfig
from mooring.client.kubeconfig.exec import ExecCredentials
from mooring.client.kubeconfig.load import component_connection, default_files, in_cluster_connection, load_connection
from mooring.kit.clock import VirtualClock

CLOCK = VirtualClock()
DATA = b64encode(b"PEM").decode()
PLUGIN = "{apiVersion: client.authentication.k8s.io/v1, command: %s, interactiveMode: Never}"


def config(tmp_path: Path, *, cluster: str = "", user: str = "", more: str = "", name: str = "config") -> str:
    """A kubeconfig with one context, `here`; returns its path."""
    cluster = cluster or "{server: 'https://api:6443'}"
    file = tmp_path / name
    file.write_text(
        f"current-context: here\nclusters: [{{name: c, cluster: {cluster}}}]\n"
        f"users: [{{name: u, user: {user or '{}'}}}]\n"
        f"contexts:\n- {{name: here, context: {{cluster: c, user: u}}}}\n{more}"
    )
    return str(file)


def load(file: str, **more: str) -> Connection:
    return load_connection(CLOCK, kubeconfig=file, environment={}, **more)


# --- files and contexts ------------------------------------------------------------------------------------------


def test_default_kubeconfig_files() -> None:
    assert default_files({"KUBECONFIG": "a::b:a", "HOME": "/h"}) == ["a", "b"]
    assert default_files({"HOME": "/h"}) == ["/h/.kube/config"]
    assert default_files({}) == []


def test_several_files_are_merged_and_missing_files_are_ignored(tmp_path: Path) -> None:
    first, second = tmp_path / "first", config(tmp_path)
    first.write_text(
        "current-context: there\ncontexts: [{name: there, context: {cluster: c, user: u, namespace: quay}}]"
    )
    environment = {"KUBECONFIG": f"{tmp_path}/missing:{first}:{second}"}
    connection = load_connection(CLOCK, environment=environment)
    assert (connection.server, connection.namespace) == ("https://api:6443", "quay")
    assert load_connection(CLOCK, context="here", environment=environment).namespace == "default"


@pytest.mark.parametrize(
    ("more", "server"),
    [
        pytest.param({}, "https://api:6443", id="the current context"),
        pytest.param({"context": "there"}, "https://other:6443/base", id="another context"),
        pytest.param({"master": "https://master:6443/"}, "https://master:6443", id="another server"),
    ],
)
def test_context_and_master_can_be_selected(tmp_path: Path, more: dict[str, str], server: str) -> None:
    others = "- {name: there, context: {cluster: d, user: u}}\n- {name: nowhere, context: {cluster: x, user: u}}\n"
    file = config(tmp_path, more=others)
    text = Path(file).read_text()
    Path(file).write_text(
        text.replace("clusters: [", "clusters: [{name: d, cluster: {server: 'https://other:6443/base/'}}, ")
    )
    assert load(file, **more).server == server
    with pytest.raises(
        KubeconfigError, match=r"config: context 'nowhere': cluster: there is no cluster 'x'; there are c, d"
    ):
        load(file, context="nowhere")
    with pytest.raises(KubeconfigError, match=r"there is no context 'lost'; there are here, nowhere, there"):
        load(file, context="lost")


def test_a_master_url_needs_no_file() -> None:
    assert load_connection(CLOCK, master="10.0.0.1:8080", environment={}).server == "http://10.0.0.1:8080"
    assert component_connection(CLOCK, master="https://a", environment={"HOME": "/h"}).server == "https://a"


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_order_of_sources_for_the_connection_of_a_component(tmp_path: Path) -> None:
    """The named file, $KUBECONFIG, the service account of the pod, ~/.kube/config."""
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    file = config(home / ".kube")
    environment = {"HOME": str(home)}
    assert component_connection(CLOCK, environment=environment).server == "https://api:6443"
    assert component_connection(CLOCK, environment={"KUBECONFIG": file, **IN_POD}).server == "https://api:6443"
    with pytest.raises(KubeconfigError, match="is a service account mounted into this pod"):
        component_connection(CLOCK, environment={**environment, **IN_POD})
    assert component_connection(CLOCK, kubeconfig=file, environment=IN_POD).server == "https://api:6443"


def test_a_component_without_a_configuration_lists_the_searched_places() -> None:
    for environment, place in (
        ({"HOME": "/nobody"}, r"\$KUBECONFIG is not set, no /nobody/\.kube/config"),
        ({"KUBECONFIG": "/nowhere"}, r"\$KUBECONFIG names /nowhere"),
    ):
        with pytest.raises(KubeconfigError, match=rf"found no kubeconfig \({place}\).*--kubeconfig.*--master"):
            component_connection(CLOCK, environment=environment)


def test_a_missing_configuration_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="no configuration was found"):
        load_connection(CLOCK, environment={})
    with pytest.raises(KubeconfigError, match="there is no such file"):
        load(str(tmp_path / "missing"))


# --- the cluster -------------------------------------------------------------------------------------------------


def test_fields_of_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"authority")
    cluster = (
        "{server: 'https://api:6443', certificate-authority: ca.crt, tls-server-name: api.internal,"
        " proxy-url: 'http://proxy:3128'}"
    )
    connection = load(config(tmp_path, cluster=cluster))
    assert (connection.authority, connection.server_name) == (b"authority", "api.internal")
    assert (connection.proxy, connection.is_server_unverified) == ("http://proxy:3128", False)
    skipped = load(config(tmp_path, cluster="{server: 'api:6443', insecure-skip-tls-verify: true}"))
    assert (skipped.server, skipped.is_server_unverified) == ("https://api:6443", True)
    data = load(config(tmp_path, cluster=f"{{server: 'https://api', certificate-authority-data: {DATA}}}"))
    assert data.authority == b"PEM"


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ("{tls-server-name: x}", "server: expected the address of the API server, found nothing"),
        ("{server: 'https://'}", "server: expected an address such as"),
        ("{server: 'https://[a'}", "server: expected an address such as https://10.0.0.1:6443, found 'https://[a'"),
        ("{server: 'https://a:99999'}", "server: expected an address such as"),
        (
            "{server: a, proxy-url: 'http://[b'}",
            "proxy-url: expected http://…, https://… or socks5://…, found 'http://[b'",
        ),
        ('{server: a, certificate-authority: "\\0"}', "certificate-authority: '\\x00' is not the path of a file"),
        ("{server: a, certificate-authority: no.crt}", "certificate-authority: no.crt cannot be read: No such file"),
        (
            f"{{server: a, certificate-authority: x, certificate-authority-data: {DATA}}}",
            "certificate-authority: is set",
        ),
        (
            f"{{server: a, insecure-skip-tls-verify: true, certificate-authority-data: {DATA}}}",
            "insecure-skip-tls-verify: is set beside a certificate authority",
        ),
        ("{server: a, proxy-url: 'ftp://b'}", "proxy-url: expected http://…, https://… or socks5://…, found 'ftp://b'"),
    ],
)
def test_invalid_clusters_are_rejected(tmp_path: Path, cluster: str, words: str) -> None:
    file = config(tmp_path, cluster=cluster)
    with pytest.raises(KubeconfigError) as problem:
        load(file)
    assert str(problem.value).startswith(f"{file}: cluster 'c': {words}")


# --- the user ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "kind", "authorization", "has_certificate"),
    [
        pytest.param("{}", StaticCredentials, "", False, id="no credentials"),
        pytest.param("{token: t}", FileCredentials, "Bearer t", False, id="a token"),
        pytest.param("{tokenFile: token}", FileCredentials, "Bearer filed", False, id="a token file"),
        pytest.param("{username: me, password: pass}", StaticCredentials, "Basic bWU6cGFzcw==", False, id="a password"),
        pytest.param(
            f"{{client-certificate-data: {DATA}, client-key: key}}", FileCredentials, "", True, id="a certificate"
        ),
        pytest.param(
            f"{{client-certificate-data: {DATA}, client-key-data: {DATA}, username: me, password: pass}}",
            FileCredentials,
            "Basic bWU6cGFzcw==",
            True,
            id="a certificate and a password",
        ),
        pytest.param(
            f"{{token: t, exec: {PLUGIN % 'p'}}}", FileCredentials, "Bearer t", False, id="a token and a plug-in"
        ),
    ],
)
def test_credentials_of_a_user(
    tmp_path: Path, user: str, kind: type, authorization: str, has_certificate: bool
) -> None:
    (tmp_path / "token").write_text("filed\n")
    (tmp_path / "key").write_text("key")
    credentials = load(config(tmp_path, user=user)).credentials
    assert type(credentials) is kind
    identity = credentials.identity_nowait()
    assert identity is not None
    assert (identity.authorization, identity.certificate is not None) == (authorization, has_certificate)


def test_credentials_are_not_used_for_plain_http(tmp_path: Path) -> None:
    connection = load(config(tmp_path, cluster="{server: 'http://api'}", user="{token: t}"))
    assert isinstance(connection.credentials, StaticCredentials)


def test_a_plug_in_path_with_a_slash_is_relative_to_its_file(tmp_path: Path) -> None:
    for command, path in (("./bin/p", str(tmp_path / "bin/p")), ("p", "p"), ("/bin/p", "/bin/p")):
        credentials = load(config(tmp_path, user=f"{{exec: {PLUGIN % command}}}")).credentials
        assert isinstance(credentials, ExecCredentials)
        assert credentials._entry.command == path


def test_impersonation_headers_of_a_user(tmp_path: Path) -> None:
    user = "{token: t, as: jane, as-uid: u1, as-groups: [a, b], as-user-extra: {Example.com/Scopes: [one, two]}}"
    assert list(load(config(tmp_path, user=user)).impersonation) == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "u1"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2Fscopes", "one"),
        ("Impersonate-Extra-example.com%2Fscopes", "two"),
    ]


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ("{token: t, username: me}", "token: is set beside username and password"),
        ("{tokenFile: none}", "tokenFile: none cannot be read: No such file"),
        (f"{{client-certificate-data: {DATA}}}", "client-key: is missing"),
        (f"{{client-certificate: a, client-certificate-data: {DATA}, client-key: b}}", "client-certificate: is set"),
        (f"{{client-certificate-data: {DATA}, client-key: a, client-key-data: {DATA}}}", "client-key: is set beside"),
        (f"{{client-certificate-data: {DATA}, client-key: none}}", "client-key: "),
        ("{client-certificate-data: '***', client-key-data: x}", "client-certificate-data: expected data in base 64"),
        ("{auth-provider: {name: gcp}}", "auth-provider: was removed"),
        ("{as-groups: [a]}", "as: is missing"),
        ("{exec: {apiVersion: client.authentication.k8s.io/v1}}", "exec.command: expected a program"),
        ("{exec: {command: p, apiVersion: v1}}", "exec.apiVersion: expected client.authentication.k8s.io/v1 or"),
        (
            "{exec: {command: p, apiVersion: client.authentication.k8s.io/v1}}",
            "exec.interactiveMode: expected Never, IfAvailable, Always, found ''",
        ),
        (f"{{exec: {(PLUGIN % 'p')[:-1]}, env: [{{value: a}}]}}}}", "exec.env: expected a name for each variable"),
    ],
)  # fmt: skip
def test_invalid_users_are_rejected(tmp_path: Path, user: str, words: str) -> None:
    file = config(tmp_path, user=user)
    with pytest.raises(KubeconfigError) as problem:
        load(file)
    assert str(problem.value).startswith(f"{file}: user 'u': {words}")


POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_in_cluster_connection_reads_server_namespace_and_rotated_token(tmp_path: Path) -> None:
    for name, text in (("token", "one"), ("ca.crt", "authority"), ("namespace", "kube-system\n")):
        (tmp_path / name).write_text(text)
    clock = VirtualClock()
    connection = in_cluster_connection(clock, POD, folder=str(tmp_path))
    assert (connection.server, connection.authority) == ("https://10.96.0.1:443", b"authority")
    assert connection.namespace == "kube-system"
    for token, at_s in (("one", 0.0), ("two", REREAD_S)):
        (tmp_path / "token").write_text(token)
        clock.advance_to(at_s)
        identity = connection.credentials.identity_nowait()
        assert identity is not None
        assert identity.authorization == f"Bearer {token}"


def test_an_ipv6_address_of_the_api_server_is_put_in_brackets(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    connection = in_cluster_connection(
        VirtualClock(), {**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, folder=str(tmp_path)
    )
    assert (connection.server, connection.authority) == ("https://[fd00::1]:443", b"")
    assert connection.namespace == "default"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"),
        (POD, "token: there is no such file; is a service account mounted"),
    ],
)
def test_incomplete_in_cluster_configuration_is_an_error(
    tmp_path: Path, environment: dict[str, str], words: str
) -> None:
    with pytest.raises(KubeconfigError, match=words):
        in_cluster_connection(VirtualClock(), environment, folder=str(tmp_path))


HARBOUR = """
apiVersion: v1
kind: Config
current-context: harbour
clusters:
- name: harbour
  cluster: {server: https://harbour:6443, certificate-authority: ca.crt}
contexts:
- name: harbour
  context: {cluster: harbour, user: pilot, namespace: quay}
users:
- name: pilot
  user: {token: one, exec: null}
"""
LAGOON = """
current-context: lagoon
clusters:
- {name: harbour, cluster: {server: https://elsewhere:6443, tls-server-name: x}}
- {name: lagoon, cluster: {server: https://lagoon:6443}}
contexts:
- {name: lagoon, context: {cluster: lagoon, user: pilot}}
users:
- {name: pilot, user: {token: two}}
"""


def written(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return str(file)


def test_the_first_file_with_an_entry_takes_precedence_and_entries_are_not_merged(tmp_path: Path) -> None:
    first = read_kubeconfig(written(tmp_path, "a", HARBOUR))
    second = read_kubeconfig(written(tmp_path, "b", LAGOON))
    both = merged([first, second])
    assert both.current_context == "harbour"
    assert both.clusters["harbour"].entry.server == "https://harbour:6443"
    assert both.clusters["harbour"].entry.tls_server_name == ""
    assert both.clusters["lagoon"].entry.server == "https://lagoon:6443"
    assert both.users["pilot"].entry.token == "one"
    assert merged([second, first]).current_context == "lagoon"
    assert merged([second, first]).users["pilot"].entry.token == "two"
    assert merged([]).is_empty


def test_relative_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    cluster = read_kubeconfig(written(tmp_path / "sub", "a", HARBOUR)).clusters["harbour"]
    assert cluster.path("ca.crt") == str(tmp_path / "sub" / "ca.crt")
    assert cluster.path("/etc/ca.crt") == "/etc/ca.crt"
    assert cluster.path("") == ""


def test_base64_data_may_contain_line_breaks(tmp_path: Path) -> None:
    cluster = read_kubeconfig(written(tmp_path, "a", HARBOUR)).clusters["harbour"]
    assert cluster.decoded("certificate-authority-data", "aGFy\nYm91\n cg==") == b"harbour"
    with pytest.raises(KubeconfigError, match=r"a: cluster 'harbour': certificate-authority-data: expected data"):
        cluster.decoded("certificate-authority-data", "%%%")


def test_an_empty_file_is_an_empty_configuration(tmp_path: Path) -> None:
    assert read_kubeconfig(written(tmp_path, "a", "\n")).is_empty


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a: [", ":1: ", id="invalid YAML"),
        pytest.param("- a", ": expected a mapping with clusters, users and contexts", id="a list"),
        pytest.param("kind: Pod", ": kind: expected Config, found 'Pod'", id="another kind"),
        pytest.param("current-context: 7", ": current-context: expected a name, found 7", id="a number for a name"),
        pytest.param("clusters: {a: b}", ": clusters: expected a list", id="a mapping for a list"),
        pytest.param("clusters: [{cluster: {}}]", ": clusters[0].name: expected the name of a cluster", id="no name"),
        pytest.param(
            "users: [{name: a, user: b}]", ": user 'a': expected a mapping under 'user'", id="a string for a user"
        ),
        pytest.param(
            "users: [{name: a, user: {token: 12}}]", ": user 'a': token: expected a string, found 12", id="a wrong type"
        ),
        pytest.param(
            "users: [{name: a, user: {exec: {args: [1]}}}]",
            ": user 'a': exec.args[0]: expected a string, found 1",
            id="a wrong type in a nested field",
        ),
    ],
)
def test_errors_are_reported_in_one_line_with_file_and_field(tmp_path: Path, text: str, words: str) -> None:
    file = written(tmp_path, "config", text)
    with pytest.raises(KubeconfigError) as problem:
        read_kubeconfig(file)
    assert str(problem.value).startswith(f"{file}{words}")
    assert "\n" not in str(problem.value)


def test_a_directory_instead_of_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="cannot be read: Is a directory"):
        read_kubeconfig(str(tmp_path))
