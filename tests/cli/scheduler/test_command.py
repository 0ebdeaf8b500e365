"""The flags of `mooring scheduler`, and how it runs."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from mooring.cli.flags import shown
from mooring.cli.main import main
from mooring.cli.scheduler.command import FLAGS, OWN_SECTION, all_flags

# What kube-scheduler v1.36.4 shows on /flagz when it is started without any (but for help and version).
KUBE_SCHEDULER_FLAGS = Path(__file__).with_name("kube_scheduler_flags.txt").read_text().splitlines()


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["scheduler", *arguments])


def test_every_flag_of_kube_scheduler_is_there_with_its_default() -> None:
    ours = {flag.name: shown(flag.flag_type, flag.default) for flag in all_flags()}
    for name, default in (line.split("=", 1) for line in KUBE_SCHEDULER_FLAGS):
        assert ours[name] == default, name
    theirs = {line.partition("=")[0] for line in KUBE_SCHEDULER_FLAGS}
    assert set(ours) - theirs == {flag.name for flag in FLAGS[OWN_SECTION]}


def test_help_lists_the_flags_that_have_an_effect() -> None:
    result = typed("--help")
    assert result.exit_code == 0
    listed = set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", result.output, re.MULTILINE))
    assert listed == {flag.name for flag in all_flags() if flag.has_effect} | {"help", "version"}
    assert "Feature gate flags" not in result.output, "a section without flags"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--nope",), "No such option"),
        (("--policy",), "No such option"),
        (("something",), "unexpected extra argument"),
        (("--secure-port", "x"), "wanted a whole number"),
        (("--leader-elect=perhaps",), "wanted true or false"),
        (("--logging-format", "xml"), "--logging-format: found 'xml', wanted text or json"),
        (("--config", "/nowhere.yaml"), "/nowhere.yaml: cannot be read"),
        (("--kubeconfig", "/nowhere"), "/nowhere: there is no such file"),
        ((), "found no kubeconfig ($KUBECONFIG names /nowhere/config)"),
        (
            ("--master", "http://127.0.0.1:1", "--leader-elect-lease-duration", "5s"),
            "leaderElection.leaseDuration: Invalid value",
        ),
        (("--master", "http://127.0.0.1:1", "--tls-min-version", "9"), "--tls-min-version: found '9'"),
        (("--master", "http://127.0.0.1:1", "--authorization-always-allow-paths", "/a*b"), "only trailing * allowed"),
        (("--plugin", "/nowhere.py"), "/nowhere.py"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    result = typed(*arguments)
    assert result.exit_code == 2
    assert complaint in result.output


def test_a_version_is_reported() -> None:
    assert "as Kubernetes v1.36.4" in typed("--version").output


def test_the_configuration_is_written(tmp_path: Path) -> None:
    file = tmp_path / "out.yaml"
    result = typed("--kube_api_qps=7", "--leader-elect-retry-period", "1s", "--write-config-to", str(file))
    assert result.exit_code == 0, result.output
    told = yaml.safe_load(file.read_text())
    assert told["clientConnection"]["qps"] == 7
    assert told["leaderElection"]["retryPeriod"] == "1s"
    assert list(told) == sorted(told)


@pytest.mark.parametrize(
    "arguments",
    [("-v=2",), ("-v2",), ("-v", "2"), ("--v=2",), ("--v", "2")],
    ids=" ".join,
)
def test_how_much_is_logged_can_be_said_in_all_ways_of_go(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = typed(*arguments, "--write-config-to", str(tmp_path / "out.yaml"))
    assert result.exit_code == 0, result.output
    assert logging.getLogger("mooring").level == logging.INFO - 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_taught(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_MOORING_COMPLETE" in result.output


# --- How `mooring scheduler` fails to start: one line, exit code 1


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        yield somebody.getsockname()[1]


def typed_flags(port: int, *flags: str) -> tuple[int, str]:
    surroundings = ("--master=http://127.0.0.1:9", "--bind-address=127.0.0.1", f"--secure-port={port}")
    result = CliRunner().invoke(main, ["scheduler", *surroundings, "--leader-elect=false", *flags])
    return result.exit_code, result.output


def test_a_port_that_is_taken(taken: int) -> None:
    code, said = typed_flags(taken)
    assert code == 1
    assert f"mooring: cannot listen on 127.0.0.1:{taken}" in said


def test_authorities_that_are_not_there(tmp_path: Path) -> None:
    code, said = typed_flags(1, f"--client-ca-file={tmp_path / 'none'}")
    assert code == 1
    assert f"mooring: {tmp_path / 'none'}: cannot be read" in said


def test_flags_that_change_nothing_are_reported(taken: int) -> None:
    _, said = typed_flags(taken, "--feature-gates=A=true", "--contention-profiling=true", "--vmodule=a=3")
    assert "--feature-gates=[A=true] has no effect here" in said
    assert "--vmodule=[a=3] has no effect here" in said
    assert "--contention-profiling" not in said, "the default is no news"
