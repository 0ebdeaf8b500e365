"""Kubeconfig files are read and merged as by kubectl; errors are reported in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.client.kubeconfig.entries import KubeconfigError, merged, read_kubeconfig

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
