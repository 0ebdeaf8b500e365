"""Exec credential plug-ins: a program that prints a token or a client certificate.

Inputs: the `exec` entry of a user, and the cluster information for the plug-in. Output: an `Identity`.

1. The program runs when an identity is first needed, when the last one has expired, and when the server rejected it. It
   never runs twice at the same time: further requests wait for its output.
2. Its input is in KUBERNETES_EXEC_INFO and its output on standard output, both as an `ExecCredential` of the version
   that the entry names.
3. Its standard error goes to ours: it may ask the user to open a page.
4. It may run for `PLUGIN_S_MAX`. After a failure it is not started again for `FAILURE_REST_S`, so that a broken plug-in
   is not started for each of a thousand requests.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mooring.api.decode import decode_as
from mooring.api.errors import ObjectError
from mooring.api.views.meta import View
from mooring.client.http.connection import Certificate, CredentialsError, Identity, bearer
from mooring.client.kubeconfig.entries import ExecEntry
from mooring.kit.clock import Clock, TimestampError, parse_rfc3339

PLUGIN_S_MAX = 300.0
FAILURE_REST_S = 1.0
API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXTENSION = "client.authentication.k8s.io/exec"
"""The extension of a cluster entry that is the configuration of a plug-in."""

logger = logging.getLogger(__name__)


class CredentialStatus(View):
    expiration_timestamp: str | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class ExecCredential(View):
    api_version: str = ""
    kind: str = ""
    status: CredentialStatus | None = None


class ExecCredentials:
    """Credentials from a plug-in."""

    def __init__(
        self,
        entry: ExecEntry,
        clock: Clock,
        *,
        cluster: Mapping[str, Any] | None = None,
        is_terminal: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`cluster` is the cluster information for the plug-in, if its entry asks for it."""
        self._entry = entry
        self._clock = clock
        self._cluster = cluster
        self._is_terminal = is_terminal
        self._environment = os.environ if environment is None else environment
        self._identity: Identity | None = None
        self._expires_wall_s: float | None = None
        self._turn = asyncio.Lock()
        self._failure: CredentialsError | None = None
        self._failed_at_s = 0.0

    def identity_nowait(self) -> Identity | None:
        if self._expires_wall_s is not None and self._clock.wall_s() > self._expires_wall_s:
            return None
        return self._identity

    async def wait_identity(self) -> Identity:
        async with self._turn:
            identity = self.identity_nowait()
            if identity is not None:
                return identity
            if self._failure is not None and self._clock.now_s() < self._failed_at_s + FAILURE_REST_S:
                raise CredentialsError(str(self._failure))
            try:
                self._identity, self._expires_wall_s = self._identity_in(await self._run())
            except CredentialsError as error:
                self._failure, self._failed_at_s = error, self._clock.now_s()
                raise
            return self._identity

    def reject(self, identity: Identity) -> bool:
        if identity is self._identity:
            self._identity = None
        return True

    # -------------------------------------------------------------------------------------------- program

    async def _run(self) -> bytes:
        entry, is_interactive = self._entry, self._is_interactive()
        variables = {**self._environment, **{variable.name: variable.value for variable in entry.env}}
        variables["KUBERNETES_EXEC_INFO"] = self._exec_info(is_interactive).decode()
        try:
            process = await asyncio.create_subprocess_exec(
                entry.command,
                *entry.args,
                env=variables,
                stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise self._wrong(f"cannot be started: {error.strerror}{self._hint()}") from error
        try:
            async with asyncio.timeout(PLUGIN_S_MAX):
                answer, _ = await process.communicate()
        except TimeoutError:
            raise self._wrong(f"gave no answer in {PLUGIN_S_MAX:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._wrong(f"failed with exit code {process.returncode}")
        return answer

    def _exec_info(self, is_interactive: bool) -> bytes:
        spec: dict[str, Any] = {"interactive": is_interactive}
        if self._entry.provide_cluster_info and self._cluster is not None:
            spec["cluster"] = self._cluster
        return msgspec.json.encode({"kind": "ExecCredential", "apiVersion": self._entry.api_version, "spec": spec})

    def _is_interactive(self) -> bool:
        match self._entry.interactive_mode:
            case "Never":
                return False
            case "Always":
                if not self._is_terminal():
                    raise self._wrong("is interactive, but standard input is not a terminal")
                return True
            case _:
                return self._is_terminal()

    def _identity_in(self, answer: bytes) -> tuple[Identity, float | None]:
        try:
            credential = decode_as(ExecCredential, answer)
        except ObjectError as error:
            raise self._wrong(f"answered with something else than an ExecCredential: {error}") from None
        if credential.api_version != self._entry.api_version:
            expected, found = self._entry.api_version, credential.api_version
            raise self._wrong(f"is configured to use API version {expected}, but answered in version {found}")
        status = credential.status
        if status is None:
            raise self._wrong("answered without a status")
        if not (status.token or status.client_certificate_data or status.client_key_data):
            raise self._wrong("answered with neither a token nor a certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._wrong("answered with only a certificate or only a key; expected both")
        return Identity(bearer(status.token), _certificate(status)), self._expiry_of(status)

    def _expiry_of(self, status: CredentialStatus) -> float | None:
        try:
            return parse_rfc3339(status.expiration_timestamp) if status.expiration_timestamp else None
        except TimestampError as error:
            raise self._wrong(f"answered with an expirationTimestamp that cannot be read: {error}") from None

    def _wrong(self, problem: str) -> CredentialsError:
        return CredentialsError(f"credential plug-in {self._entry.command} {problem}")

    def _hint(self) -> str:
        # Without control characters, which could change the state of a terminal.
        hint = "".join(letter for letter in " ".join(self._entry.install_hint.split()) if letter.isprintable())
        return f"; {hint}" if hint else ""


def _certificate(status: CredentialStatus) -> Certificate | None:
    if not status.client_certificate_data:
        return None
    return Certificate(status.client_certificate_data.encode(), status.client_key_data.encode())
