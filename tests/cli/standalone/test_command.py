"""The flags of `mooring controllers` and `mooring nodes`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mooring.cli.flags import FlagType, parse_value
from mooring.cli.main import main
from mooring.cli.standalone import run as standalone
from mooring.cli.standalone.command import IDLE_FLAGS, controllers
from mooring.cli.up.command import controller_flags, controller_settings
from mooring.client.election import ElectionSettings
from mooring.controllers.settings import IN_PROCESS_DEFAULTS, ControllerSettings

# What kube-controller-manager v1.36.4 lists in its help; those without a value are marked.
THEIRS = dict(
    line.partition("=")[::2]
    for line in Path(__file__).with_name("kube_controller_manager_flags.txt").read_text().split()
)
PATIENT = ElectionSettings("kube-system", "kube-controller-manager", "me", 15.0, 10.0, 2.0)
HASTY = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline", "3s", "--leader-elect-retry-period=500ms")


def test_every_flag_of_kube_controller_manager_is_there() -> None:
    ours = {name.removeprefix("--") for parameter in controllers.params for name in parameter.opts}
    assert set(THEIRS) - ours - {"version"} == set()  # `mooring --version` is for all commands


def test_what_has_no_effect_is_a_flag_there_of_the_same_sort() -> None:
    for flag in IDLE_FLAGS:
        assert THEIRS[flag.name] == ("switch" if flag.flag_type is FlagType.SWITCH else ""), flag.name


def test_options_without_effect_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[ControllerSettings] = []
    monkeypatch.setattr(
        standalone, "run_controllers", lambda options, settings, enabled, root_ca_file: ran.append(settings)
    )
    idle = ["--use-service-account-credentials=true", "--cluster-cidr=10.0.0.0/8", "--v=2", "--profiling"]
    used = ["--enable-garbage-collector", "--node-eviction-rate=10"]
    result = CliRunner().invoke(main, ["controllers", *idle, *used, "--logging-format=json"])
    assert result.exit_code == 0
    assert sorted(json.loads(line)["msg"] for line in result.output.splitlines()) == [
        "--cluster-cidr=10.0.0.0/8 has no effect here",
        "--profiling=true has no effect here",
        "--use-service-account-credentials=true has no effect here",
        "--v=2 has no effect here",
    ]
    assert ran == [ControllerSettings(enable_garbage_collector=True, node_eviction_rate=10.0)]


@dataclass
class Started:
    """What would have been run."""

    output: str = ""
    lease: ElectionSettings | None = None
    options: standalone.StandaloneOptions | None = None
    settings: ControllerSettings | None = None


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    found = Started()

    def run(
        options: standalone.StandaloneOptions, component: str, work: Any, lease: str, health: Any, *, is_served: bool
    ) -> None:
        found.options, found.lease = options, options.lease(lease, "me")

    monkeypatch.setattr(standalone, "_run", run)
    return found


def typed(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words))
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "lease"),
    [
        pytest.param((), PATIENT, id="a lease is held unless told otherwise"),
        pytest.param(("--leader-elect",), PATIENT, id="a switch may stand alone"),
        pytest.param(("--leader-elect=true",), PATIENT, id="or have its value after an equals sign"),
        pytest.param(("--leader-elect=false",), None, id="which may be no"),
        pytest.param(("--leader-elect", "--kube-api-qps", "5"), PATIENT, id="a flag after a switch is not its value"),
        pytest.param(
            ("--leader-elect-resource-name=mine", "--leader-elect-resource-namespace=here"),
            ElectionSettings("here", "mine", "me"),
            id="a lease of another name",
        ),
        pytest.param(
            HASTY, ElectionSettings("kube-system", "kube-controller-manager", "me", 4.0, 3.0, 0.5), id="other times"
        ),
    ],
)
def test_leases_have_the_names_of_kubernetes_components(
    words: tuple[str, ...], lease: ElectionSettings | None, started: Started
) -> None:
    assert typed("controllers", *words) == (0, "")
    assert started.lease == lease


SETTINGS = ["--node-monitor-period=500ms", "--large-cluster-size-threshold=7", "--concurrent-replicaset-syncs=7"]


def test_settings_have_the_names_of_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[ControllerSettings] = []
    monkeypatch.setattr(standalone, "run_controllers", lambda options, settings, *more: ran.append(settings))
    assert typed("controllers", *SETTINGS, "--node-eviction-rate=10", "--enable-garbage-collector=false") == (0, "")
    assert ran == [
        ControllerSettings(
            node_monitor_period_s=0.5,
            node_eviction_rate=10.0,
            large_cluster_size_threshold=7,
            concurrent_replicaset_syncs=7,
            enable_garbage_collector=False,
        )
    ]


def test_settings_without_a_flag_keep_the_defaults_of_the_command() -> None:
    values = {flag.attribute: flag.default for flag in controller_flags(IN_PROCESS_DEFAULTS)}
    values["concurrent_replicaset_syncs"] = 7
    assert controller_settings(values) == replace(IN_PROCESS_DEFAULTS, concurrent_replicaset_syncs=7)


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0.0), ("5250ms", 5.25), ("1m30s", 90.0), ("1h", 3600.0), ("1.5s", 1.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_value(FlagType.DURATION, text) == pytest.approx(seconds)


def test_nodes_hold_a_lease_of_their_own(started: Started) -> None:
    assert typed("nodes", "--name-prefix", "edge-", "--kube-api-qps=10", "--kube-api-burst=20") == (0, "")
    assert started.lease == ElectionSettings("kube-system", "mooring-nodes-edge", "me")
    assert started.options is not None
    assert (started.options.kube_api_qps, started.options.kube_api_burst) == (10.0, 20)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--leader-elect=maybe",), "found 'maybe', wanted true or false", id="a switch that is neither"),
        pytest.param(("--leader-elect-retry-period=soon",), "soon", id="a time that is none"),
        pytest.param(("--node-monitor-period=soon",), 'time: invalid duration "soon"', id="no period"),
        pytest.param(("--node-monitor-period", "5"), 'missing unit in duration "5"', id="a period without a unit"),
        pytest.param(("--node-monitor-period=-5s",), "--node-monitor-period: found -5s", id="a negative period"),
        pytest.param(("--concurrent-rc-syncs", "many"), "found 'many', wanted a whole number", id="no number"),
        pytest.param(("--enable-garbage-collector=perhaps",), "wanted true or false", id="a setting that is neither"),
        pytest.param(("--no-such-flag", "1"), "No such option", id="an unknown flag"),
        pytest.param(("--use-service-account-credentials=x",), "wanted true or false", id="also without effect"),
    ],
)
def test_wrong_values_are_refused_in_words(words: tuple[str, ...], said: str) -> None:
    code, output = typed("controllers", *words)
    assert (code, said in output) == (2, True), output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--cpu", "many"), "cpu of a node is 'many'; wanted an amount", id="an amount that is none"),
        pytest.param(("--name-prefix", "N"), "nodes would be called 'N0'", id="a name that is none"),
        pytest.param(
            ("--stages", "{file}"), "{file}: stageSets[0] (a) stages[0]: 'fo' is not known here", id="a stage set"
        ),
    ],
)
def test_invalid_nodes_are_rejected_before_any_request(
    words: tuple[str, ...], said: str, tmp_path: Path, started: Started
) -> None:
    file = tmp_path / "stages.yaml"
    file.write_text("stageSets: [{name: a, stages: [{name: x, state: running, fo: 3s}]}]")
    code, output = typed("nodes", *(word.format(file=file) for word in words))
    assert (code, said.format(file=file) in output, started.options) == (2, True, None), output


def test_a_root_ca_file_that_is_not_text_is_refused(tmp_path: Path, started: Started) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(b"\x30\x82\xff\xfe")
    code, output = typed("controllers", "--root-ca-file", str(file))
    assert (code, output) == (2, f"mooring: {file}: is not UTF-8 text; certificates in PEM format are wanted\n")
    assert started.options is None


def test_times_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\n")
    code, output = typed("controllers", "--kubeconfig", str(kubeconfig), "--leader-elect-lease-duration=3s")
    assert (code, "leaseDuration must be greater than renewDeadline" in output) == (2, True), output
