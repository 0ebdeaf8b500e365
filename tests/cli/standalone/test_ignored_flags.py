"""Every flag of kube-controller-manager is one of `mooring controllers`."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

from mooring.cli.main import main
from mooring.cli.standalone import run as standalone
from mooring.cli.standalone.command import controllers
from mooring.cli.standalone.ignored_flags import SWITCHES, VALUES
from mooring.controllers.settings import ControllerSettings

# What kube-controller-manager v1.36.4 lists in its help; those without a value are marked.
THEIRS = dict(
    line.partition("=")[::2]
    for line in Path(__file__).with_name("kube_controller_manager_flags.txt").read_text().split()
)


def test_every_flag_of_kube_controller_manager_is_there() -> None:
    ours = {name.removeprefix("--") for parameter in controllers.params for name in parameter.opts}
    assert set(THEIRS) - ours - {"version"} == set()  # `mooring --version` is for all commands


def test_what_has_no_effect_is_a_flag_there_of_the_same_sort() -> None:
    assert {name for name in SWITCHES if THEIRS.get(name) != "switch"} == set()
    assert {name for name in VALUES if THEIRS.get(name) != ""} == set()


def test_what_has_no_effect_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[ControllerSettings] = []
    monkeypatch.setattr(
        standalone, "run_controllers", lambda options, settings, enabled, root_ca_file: ran.append(settings)
    )
    idle = ["--use-service-account-credentials=true", "--cert-dir=/pki", "--v=2", "--profiling"]
    used = ["--enable-garbage-collector", "--node-eviction-rate=10"]
    with caplog.at_level(logging.WARNING):
        result = CliRunner().invoke(main, ["controllers", *idle, *used])
    assert (result.exit_code, result.output) == (0, "")
    assert "--cert-dir, --profiling, --use-service-account-credentials, --v" in caplog.text
    assert ran == [ControllerSettings(enable_garbage_collector=True, node_eviction_rate=10.0)]
