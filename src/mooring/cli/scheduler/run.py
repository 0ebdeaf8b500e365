"""Runs `mooring scheduler` until a signal.

1. The exit code is 0 after a signal, 1 if the lease is lost or the scheduler fails.
2. The first SIGTERM or Ctrl-C stops the scheduler in order, the second one at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import click

from mooring import __version__
from mooring.cli.errors import input_error
from mooring.cli.flags import FlagValue, shown, size_bytes, warn_of_flags_without_effect
from mooring.cli.scheduler.command import all_flags
from mooring.cli.scheduler.configuration import check_recordable, configuration_of, write_configuration
from mooring.client.election import ElectionSettingsError, LeadershipLostError
from mooring.client.http.connection import Connection
from mooring.client.http.dial import TlsError
from mooring.client.kubeconfig.entries import KubeconfigError
from mooring.client.kubeconfig.load import component_connection, in_cluster_connection, is_in_cluster
from mooring.cluster.scheduler_process import SchedulerProcess, SchedulerSettings, election_settings
from mooring.cluster.secure_port import ConsoleLogin, SecurePort
from mooring.kit.clock import Clock, SystemClock
from mooring.kit.entropy import system_entropy
from mooring.kit.logs import FORMATS, level_of, set_level, start_logs
from mooring.kit.loop import run_real
from mooring.kit.tasks import errors_in
from mooring.scheduler.config.types import SchedulerConfiguration
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.reporting.decision_log import DecisionLog, DecisionLogError
from mooring.scheduler.reporting.recording import Recording, RecordingError
from mooring.scheduler.scheduler import Limits
from mooring.serving.authentication import AuthoritiesError, AuthorityFiles, ProxyRules
from mooring.serving.authorization import AllowedPathError, AllowedPaths
from mooring.serving.http.listener import PortTakenError
from mooring.serving.tls import ServingTls, ServingTlsError, serving_context

EXIT_DONE = 0
EXIT_FAILED = 1

logger = logging.getLogger(__name__)

Flags = Mapping[str, FlagValue]


def set_verbosity(verbosity: int) -> None:
    set_level(level_of(verbosity))


def run_scheduler(flags: Flags, given: frozenset[str]) -> int:
    """Runs until a signal. Returns the exit code; raises `InputError`."""
    if flags["logging-format"] not in FORMATS:
        raise input_error(f"--logging-format: found {flags['logging-format']!r}, wanted {' or '.join(FORMATS)}")
    start_logs(_text(flags, "logging-format"), level_of(_integer(flags, "v")))
    configuration, registry = configuration_of(flags, given)
    if flags["write-config-to"]:
        write_configuration(configuration, _text(flags, "write-config-to"))
        logger.info("wrote the configuration to %s", flags["write-config-to"])
        return EXIT_DONE
    warn_of_flags_without_effect(all_flags(), flags)
    settings = _settings(flags, configuration, registry, SystemClock())
    try:
        run_real(_run(settings))
    except BaseExceptionGroup as group:
        return _report_failures(group)
    return EXIT_DONE


async def _run(settings: SchedulerSettings) -> None:
    entropy = system_entropy()
    server = settings.connection.server
    logger.info("mooring %s starts as kube-scheduler v1.36 of %s (seed %d)", __version__, server, entropy.seed)
    process = SchedulerProcess(settings, SystemClock(), entropy)
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if process.is_stopping:
            # The second signal: stop at once.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.raise_signal(signal.SIGINT)
        logger.info("stopping")
        process.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    await process.run()
    logger.info("stopped")


# Settings


def _settings(
    flags: Flags, configuration: SchedulerConfiguration, registry: Registry, clock: Clock
) -> SchedulerSettings:
    if flags["console"] and not flags["secure-port"]:
        raise input_error("--console needs the secure port, and --secure-port is 0")
    election = configuration.leader_election
    try:
        connection = component_connection(
            clock, kubeconfig=configuration.client_connection.kubeconfig, master=_text(flags, "master")
        )
        if election.leader_elect:
            election_settings(election, "unknown")  # reports errors before anything starts
        port = _secure_port(flags, clock) if flags["secure-port"] else None
    except (KubeconfigError, TlsError, ElectionSettingsError, ServingTlsError, AllowedPathError) as error:
        raise input_error(str(error)) from error
    return SchedulerSettings(
        configuration=configuration,
        connection=connection,
        registry=registry,
        port=port,
        in_flight_max=_integer(flags, "requests-in-flight-max"),
        limits=Limits(unschedulable_s_max=_seconds(flags, "pod-max-in-unschedulable-pods-duration")),
        flags={flag.name: shown(flag.flag_type, flags[flag.name]) for flag in all_flags()},
        hidden_metrics=_list(flags, "disabled-metrics"),
        set_verbosity=set_verbosity,
        decision_log=_decision_log(flags, clock),
        recording=_recording(flags, configuration, clock),
    )


def _decision_log(flags: Flags, clock: Clock) -> DecisionLog | None:
    path = _text(flags, "decision-log")
    if not path:
        return None
    try:
        return DecisionLog(Path(path), clock)
    except DecisionLogError as error:
        raise input_error(str(error)) from error


def _recording(flags: Flags, configuration: SchedulerConfiguration, clock: Clock) -> Recording | None:
    path = _text(flags, "record")
    if not path:
        return None
    bytes_max = size_bytes("record-size-max", _text(flags, "record-size-max"))
    check_recordable(configuration)
    try:
        return Recording(Path(path), clock, bytes_max=bytes_max)
    except RecordingError as error:
        raise input_error(str(error)) from error


def _secure_port(flags: Flags, clock: Clock) -> SecurePort:
    tls = ServingTls(
        name="kube-scheduler",
        certificate_file=_text(flags, "tls-cert-file"),
        key_file=_text(flags, "tls-private-key-file"),
        directory=_text(flags, "cert-dir"),
        more=_list(flags, "tls-sni-cert-key"),
        version_min=_text(flags, "tls-min-version"),
        ciphers=_list(flags, "tls-cipher-suites"),
    )
    serving_context(tls, clock.wall_s())  # reports errors before anything starts
    AllowedPaths(_list(flags, "authorization-always-allow-paths"))
    return SecurePort(
        host=_text(flags, "bind-address"),
        port=_integer(flags, "secure-port"),
        tls=tls,
        authorities=AuthorityFiles(
            clients=_text(flags, "client-ca-file"),
            proxies=_text(flags, "requestheader-client-ca-file"),
            proxy=_proxy_rules(flags),
        ),
        authentication=_review_connection(flags, "authentication-kubeconfig", clock),
        authorization=_review_connection(flags, "authorization-kubeconfig", clock),
        is_lookup_skipped=bool(flags["authentication-skip-lookup"]),
        is_lookup_failure_tolerated=bool(flags["authentication-tolerate-lookup-failure"]),
        allowed_paths=_list(flags, "authorization-always-allow-paths"),
        token_remembered_s=_seconds(flags, "authentication-token-webhook-cache-ttl"),
        allowed_remembered_s=_seconds(flags, "authorization-webhook-cache-authorized-ttl"),
        denied_remembered_s=_seconds(flags, "authorization-webhook-cache-unauthorized-ttl"),
        shares_address=bool(flags["permit-address-sharing"]),
        shares_port=bool(flags["permit-port-sharing"]),
        console=ConsoleLogin(_log_link) if flags["console"] else None,
    )


def _log_link(link: str) -> None:
    logger.info("console: %s (logs in once, within an hour)", link)


def _proxy_rules(flags: Flags) -> ProxyRules:
    def headers(name: str) -> tuple[str, ...]:
        return tuple(header.lower() for header in _list(flags, f"requestheader-{name}"))

    return ProxyRules(
        _list(flags, "requestheader-allowed-names"),
        headers("username-headers"),
        headers("uid-headers"),
        headers("group-headers"),
        headers("extra-headers-prefix"),
    )


def _review_connection(flags: Flags, name: str, clock: Clock) -> Connection | None:
    """As kube-scheduler: the kubeconfig, or the service account of the pod, or none."""
    if flags[name]:
        return component_connection(clock, kubeconfig=_text(flags, name))
    if is_in_cluster(os.environ):
        return in_cluster_connection(clock, os.environ)
    logger.warning("no --%s was given: only public paths are served, and clients are anonymous", name)
    return None


# Failures


def _report_failures(group: BaseExceptionGroup[BaseException]) -> int:
    for error in errors_in(group):
        if isinstance(error, LeadershipLostError):
            logger.error("leader election lost: %s", error)
        elif isinstance(error, PortTakenError | AuthoritiesError):
            click.echo(f"mooring: {error}", err=True)
        else:
            logger.error("the scheduler failed", exc_info=error)
    return EXIT_FAILED


def _text(flags: Flags, name: str) -> str:
    return str(flags[name])


def _integer(flags: Flags, name: str) -> int:
    value = flags[name]
    assert isinstance(value, int), f"--{name} is {value!r}"
    return value


def _seconds(flags: Flags, name: str) -> float:
    value = flags[name]
    assert isinstance(value, float | int), f"--{name} is {value!r}"
    return float(value)


def _list(flags: Flags, name: str) -> tuple[str, ...]:
    value = flags[name]
    assert isinstance(value, tuple), f"--{name} is {value!r}"
    return value
