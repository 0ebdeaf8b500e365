"""Exec credential plug-ins: when they run, their environment, responses and errors."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from mooring.api.kinds import POD
from mooring.client.errors import NotFoundError, UnauthorizedError
from mooring.client.http.connection import CredentialsError
from mooring.client.kubeconfig.entries import ExecEntry, ExecVariable
from mooring.client.kubeconfig.exec import FAILURE_REST_S, ExecCredentials
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from tests.client.certificates import make_authority
from tests.client.contract_play import NS
from tests.client.http.play import HttpSetup, run_over_http
from tests.waiting import LIMIT_S

VERSION = "client.authentication.k8s.io/v1"
ENVIRONMENT = {"PATH": os.environ["PATH"]}


class Plugin:
    """A plug-in that prints the output of a script and counts its runs."""

    def __init__(self, folder: Path, script: str) -> None:
        self._runs = folder / "runs"
        self._program = folder / "plugin"
        self._program.write_text(f"#!/bin/sh\necho >> {self._runs}\n{script}\n")
        self._program.chmod(0o755)

    def entry(self, *, mode: str = "Never", provide: bool = False, hint: str = "", program: str = "") -> ExecEntry:
        return ExecEntry(
            command=program or str(self._program),
            args=("one", "two"),
            env=(ExecVariable(name="HARBOUR", value="quay"),),
            api_version=VERSION,
            interactive_mode=mode,
            provide_cluster_info=provide,
            install_hint=hint,
        )

    @property
    def runs(self) -> int:
        return self._runs.read_text().count("\n") if self._runs.exists() else 0


def answer(status: str, version: str = VERSION) -> str:
    return f"""echo '{{"kind":"ExecCredential","apiVersion":"{version}","status":{status}}}'"""


def run_scenario(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    run_real(main())


def test_an_identity_is_cached_until_it_expires(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, answer('{"token":"t","expirationTimestamp":"2026-01-01T01:00:00Z"}'))
    clock = VirtualClock()

    async def scenario() -> None:
        credentials = ExecCredentials(plugin.entry(), clock, environment=ENVIRONMENT)
        assert credentials.identity_nowait() is None
        identity = await credentials.wait_identity()
        assert identity.authorization == "Bearer t"
        clock.advance_to(3600.0)
        assert credentials.identity_nowait() is identity
        assert plugin.runs == 1
        clock.advance_to(3601.0)
        assert credentials.identity_nowait() is None
        assert await credentials.wait_identity() is not identity
        assert plugin.runs == 2

    run_scenario(scenario)


def test_concurrent_requests_run_the_plug_in_once(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, answer('{"token":"t"}'))

    async def scenario() -> None:
        credentials = ExecCredentials(plugin.entry(), VirtualClock(), environment=ENVIRONMENT)
        async with TaskGroup("requests") as group:
            tasks = [group.start(credentials.wait_identity(), name=str(number)) for number in range(5)]
        assert len({id(task.result()) for task in tasks}) == 1
        assert plugin.runs == 1

    run_scenario(scenario)


def test_a_rejected_identity_is_renewed_once(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, answer('{"token":"t"}'))

    async def scenario() -> None:
        credentials = ExecCredentials(plugin.entry(), VirtualClock(), environment=ENVIRONMENT)
        first = await credentials.wait_identity()
        assert credentials.reject(first)
        second = await credentials.wait_identity()
        assert credentials.reject(first), "the identity was already renewed"
        assert await credentials.wait_identity() is second
        assert plugin.runs == 2

    run_scenario(scenario)


def test_arguments_and_environment_of_a_plug_in(tmp_path: Path) -> None:
    output = tmp_path / "heard"
    plugin = Plugin(
        tmp_path,
        f'echo "$1 $2 $HARBOUR" > {output}; echo "$KUBERNETES_EXEC_INFO" >> {output}\n' + answer('{"token":"t"}'),
    )

    async def scenario() -> None:
        for provide in (True, False):
            cluster = {"server": "https://api", "certificate-authority-data": b"PEM", "config": {"a": 1}}
            entry = plugin.entry(provide=provide)
            await ExecCredentials(entry, VirtualClock(), cluster=cluster, environment=ENVIRONMENT).wait_identity()
            arguments, _, info = output.read_text().partition("\n")
            assert arguments == "one two quay"
            result = msgspec.json.decode(info)
            assert (result["kind"], result["apiVersion"]) == ("ExecCredential", VERSION)
            assert result["spec"]["interactive"] is False
            if provide:
                assert result["spec"]["cluster"] == {
                    "server": "https://api",
                    "certificate-authority-data": "UEVN",
                    "config": {"a": 1},
                }
            else:
                assert "cluster" not in result["spec"]

    run_scenario(scenario)


def test_a_plug_in_may_return_a_certificate(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, answer('{"clientCertificateData":"chain","clientKeyData":"key"}'))

    async def scenario() -> None:
        identity = await ExecCredentials(plugin.entry(), VirtualClock(), environment=ENVIRONMENT).wait_identity()
        assert identity.authorization == ""
        assert identity.certificate is not None
        assert (identity.certificate.chain, identity.certificate.key) == (b"chain", b"key")

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        pytest.param("exit 3", "failed with exit code 3", id="exit code 3"),
        pytest.param("echo hello", "answered with something else than an ExecCredential", id="other output"),
        pytest.param(answer("null"), "answered without a status", id="no status"),
        pytest.param(answer("{}"), "answered with neither a token nor a certificate", id="an empty status"),
        pytest.param(
            answer('{"clientKeyData":"k"}'), "only a certificate or only a key", id="a key without a certificate"
        ),
        pytest.param(
            answer('{"token":"t","expirationTimestamp":"soon"}'),
            "expirationTimestamp that cannot be read",
            id="an invalid expiration",
        ),
        pytest.param(
            answer('{"token":"t"}', "client.authentication.k8s.io/v1beta1"),
            "is configured to use API version client.authentication.k8s.io/v1, but answered in version",
            id="another version",
        ),
    ],
)
def test_invalid_responses_of_a_plug_in(tmp_path: Path, script: str, words: str) -> None:
    plugin = Plugin(tmp_path, script)

    async def scenario() -> None:
        clock = VirtualClock()
        credentials = ExecCredentials(plugin.entry(), clock, environment=ENVIRONMENT)
        for _ in range(3):
            with pytest.raises(CredentialsError) as problem:
                await credentials.wait_identity()
            assert f"credential plug-in {tmp_path}/plugin " in str(problem.value)
            assert words in str(problem.value)
        assert plugin.runs == 1, "a failed plug-in is not run again immediately"
        clock.advance_to(FAILURE_REST_S)
        with pytest.raises(CredentialsError):
            await credentials.wait_identity()
        assert plugin.runs == 2

    run_scenario(scenario)


def test_a_missing_program_is_reported_with_its_install_hint(tmp_path: Path) -> None:
    async def scenario() -> None:
        entry = Plugin(tmp_path, "").entry(program="no-such-plugin", hint="install\n\x1b[1mit")
        with pytest.raises(CredentialsError, match=r"no-such-plugin cannot be started: .*; install \[1mit"):
            await ExecCredentials(entry, VirtualClock(), environment=ENVIRONMENT).wait_identity()

    run_scenario(scenario)


def test_a_plug_in_without_a_response_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.client.kubeconfig.exec.PLUGIN_S_MAX", 0.1)

    async def scenario() -> None:
        entry = Plugin(tmp_path, "exec sleep 6000").entry()
        with pytest.raises(CredentialsError, match="gave no answer"):
            async with asyncio.timeout(LIMIT_S):
                await ExecCredentials(entry, VirtualClock(), environment=ENVIRONMENT).wait_identity()

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("mode", "is_terminal", "result"),
    [
        ("Never", True, False),
        ("IfAvailable", True, True),
        ("IfAvailable", False, False),
        ("", False, False),
        ("Always", True, True),
        ("Always", False, None),
    ],
)
def test_interactive_mode_and_terminal_determine_is_interactive(
    tmp_path: Path, mode: str, is_terminal: bool, result: bool | None
) -> None:
    credentials = ExecCredentials(
        Plugin(tmp_path, "").entry(mode=mode), VirtualClock(), is_terminal=lambda: is_terminal
    )
    if result is None:
        with pytest.raises(CredentialsError, match="standard input is not a terminal"):
            credentials._is_interactive()
    else:
        assert credentials._is_interactive() is result


def test_a_token_rejected_by_the_server_is_renewed_during_the_request(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, f"""echo '{{"apiVersion":"{VERSION}","status":{{"token":"'$(cat {tmp_path}/t)'"}}}}'""")
    (tmp_path / "t").write_text("old")

    async def scenario(setup: HttpSetup) -> None:
        for token in ("old", "new"):
            (tmp_path / "t").write_text(token)
            setup.server.tokens = {token}
            with pytest.raises(NotFoundError):
                await setup.client.get(POD, NS, "web")
        assert plugin.runs == 2
        assert setup.client.statistics()["renewals"] == 1
        setup.server.tokens = {"of somebody else"}
        setup.server.requests.clear()
        with pytest.raises(UnauthorizedError):
            await setup.client.get(POD, NS, "web")
        assert len(setup.server.requests) == 2, "the request is repeated only once"

    authority = make_authority()
    run_over_http(
        scenario,
        security=authority.server_context(tmp_path, authority.issue("server", address="127.0.0.1")),
        authority=authority.pem,
        credentials=ExecCredentials(plugin.entry(), VirtualClock(), environment=ENVIRONMENT),
    )
