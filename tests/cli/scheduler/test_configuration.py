"""The configuration from flags and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.cli.errors import InputError
from mooring.cli.flags import FlagValue
from mooring.cli.scheduler.command import all_flags
from mooring.cli.scheduler.configuration import configuration_of

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /from/file, qps: 9}
leaderElection: {resourceName: from-file, leaseDuration: 20s}
enableProfiling: false
"""
POLICY = """
kind: Policy
apiVersion: v1
predicates: [{name: PodFitsResources}]
"""


def flags(**given: FlagValue) -> tuple[dict[str, FlagValue], frozenset[str]]:
    named = {name.replace("_", "-"): value for name, value in given.items()}
    return {**{flag.name: flag.default for flag in all_flags()}, **named}, frozenset(named)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "scheduler.yaml"
    path.write_text(CONFIGURATION)
    return str(path)


def test_without_a_file_every_flag_counts() -> None:
    given = flags(kubeconfig="/k", kube_api_qps=5.0, profiling=False, leader_elect=False, kube_api_burst=3)
    configuration, _ = configuration_of(*given)
    assert configuration.client_connection.kubeconfig == "/k"
    assert (configuration.client_connection.qps, configuration.client_connection.burst) == (5.0, 3)
    assert not configuration.enable_profiling
    assert not configuration.leader_election.leader_elect


def test_with_a_file_only_leader_election_wins_over_it(file: str, caplog: pytest.LogCaptureFixture) -> None:
    given = flags(config=file, kube_api_qps=5.0, profiling=True, leader_elect_resource_name="flag")
    with caplog.at_level("WARNING"):
        configuration, _ = configuration_of(*given)
    assert caplog.messages == ["ignored, because --config is given: --kube-api-qps, --profiling"]
    assert configuration.client_connection.kubeconfig == "/from/file"
    assert configuration.client_connection.qps == 9
    assert not configuration.enable_profiling
    assert configuration.leader_election.resource_name == "flag"
    assert configuration.leader_election.lease_duration_s == 20.0


def test_a_kubeconfig_beside_a_file_is_used_or_rejected(file: str, tmp_path: Path) -> None:
    configuration, _ = configuration_of(*flags(config=file, kubeconfig="/from/file"))
    assert configuration.client_connection.kubeconfig == "/from/file"
    with pytest.raises(InputError, match=r"--kubeconfig /k contradicts clientConnection.kubeconfig: /from/file"):
        configuration_of(*flags(config=file, kubeconfig="/k"))
    silent = tmp_path / "silent.yaml"
    silent.write_text(CONFIGURATION.replace("kubeconfig: /from/file, ", ""))
    configuration, _ = configuration_of(*flags(config=str(silent), kubeconfig="/k"))
    assert configuration.client_connection.kubeconfig == "/k"
    assert configuration.client_connection.qps == 9


def test_flags_that_were_not_given_change_nothing(file: str) -> None:
    configuration, _ = configuration_of(*flags(config=file))
    assert configuration.leader_election.resource_name == "from-file"


def test_an_older_policy(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    configuration, _ = configuration_of(*flags(policy_config_file=str(policy), kube_api_qps=5.0))
    names = configuration.profiles[0].plugins.enabled_names()
    assert "NodeResourcesFit" in names
    assert "TaintToleration" in names  # mandatory
    assert "InterPodAffinity" not in names or configuration.profiles[0].plugins.score.disabled
    assert configuration.client_connection.qps == 5.0


def test_a_configuration_wins_over_a_policy(file: str, tmp_path: Path) -> None:
    configuration, _ = configuration_of(*flags(config=file, policy_config_file=str(tmp_path / "not there")))
    assert configuration.leader_election.resource_name == "from-file"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("kind: [", "cannot be read as YAML or JSON"),
        (CONFIGURATION + "nonsense: 1\n", ':7: strict decoding error: unknown field "nonsense"'),
        (CONFIGURATION + "podMaxBackoffSeconds: -1\n", ":7: podMaxBackoffSeconds: Invalid value: -1"),
    ],
    ids=["no YAML", "an unknown field", "a value that makes no sense"],
)
def test_errors_are_reported_with_their_line(content: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    with pytest.raises(InputError) as raised:
        configuration_of(*flags(config=str(path)))
    assert complaint in str(raised.value)


def test_a_plugin_from_a_file_is_enabled(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from mooring.scheduler.framework.node_plugins import FilterPlugin\n"
        "class Mine(FilterPlugin):\n"
        "    name = 'Mine'\n"
        "    def filter(self, pod, node_info):\n"
        "        return None\n"
    )
    configuration, registry = configuration_of(*flags(plugin=(str(path),)))
    assert "Mine" in configuration.profiles[0].plugins.enabled_names()
    assert registry is not None
