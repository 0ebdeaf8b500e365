"""The command `mooring scheduler`: the scheduler as a standalone component, with the flags of kube-scheduler v1.36.

1. All flags of kube-scheduler are accepted, with their names and defaults, so that its command line works unchanged.
   The help omits those without effect. Unknown flags and arguments are errors.
2. Underscores in flag names are dashes, as in Kubernetes' components, and `-v=2` is `-v 2`.
3. With `--config` the section "deprecated" is ignored, as in kube-scheduler, except `--kubeconfig`; flags of leader
   election override the file.
4. The last section is specific to Mooring: Policy files (kube-scheduler before 1.23), plugins from Python files.
5. Everything but click is imported when the command runs.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import click
from click.core import ParameterSource

from mooring.cli.flags import Flag, FlagType, FlagValue, SectionedCommand, attributes_by_section, flag_options
from mooring.cli.options import KUBECONFIG, MASTER, leader_election_flags, serving_flags
from mooring.kit.memory import end_loading, loading

_CONFIGURATIONS = (".yaml", ".yml", ".json")


def _text(name: str, text: str, default: str = "", *, has_effect: bool = True) -> Flag:
    return Flag(name, FlagType.TEXT, default, text, has_effect=has_effect)


def _file(name: str, text: str, *, has_effect: bool = True, endings: tuple[str, ...] = ()) -> Flag:
    return Flag(name, FlagType.FILE, "", text, has_effect=has_effect, endings=endings)


def _switch(name: str, text: str, default: bool = False, *, has_effect: bool = True) -> Flag:
    return Flag(name, FlagType.SWITCH, default, text, has_effect=has_effect)


def _duration(name: str, text: str, default_s: float, *, has_effect: bool = True) -> Flag:
    return Flag(name, FlagType.DURATION, default_s, text, has_effect=has_effect)


def _list(name: str, text: str, *default: str, has_effect: bool = True) -> Flag:
    return Flag(name, FlagType.LIST, default, text, has_effect=has_effect)


OWN_SECTION = "Mooring flags"
FLAGS: dict[str, tuple[Flag, ...]] = {
    "Misc flags": (
        _file("config", "A KubeSchedulerConfiguration: YAML or JSON.", endings=_CONFIGURATIONS),
        MASTER,
        _file("write-config-to", "Write the configuration with all defaults to this file and exit."),
    ),
    "Secure serving flags": (
        *serving_flags(
            Flag("secure-port", FlagType.PORT, 10_259, "The port of health, metrics and profiles over TLS; 0: none.")
        ),
        Flag("tls-sni-cert-key", FlagType.PAIRS, (), "Serving certificates for other server names."),
        _list("tls-cipher-suites", "Cipher suites of TLS 1.2, by their IANA names."),
        _text("tls-min-version", "VersionTLS12 or VersionTLS13; older versions are not supported."),
        _list("tls-curve-preferences", "Key exchange mechanisms.", has_effect=False),
        _switch("permit-address-sharing", "Set SO_REUSEADDR on the secure port."),
        _switch("permit-port-sharing", "Set SO_REUSEPORT on the secure port."),
        _switch("disable-http2-serving", "HTTP/2 is not supported.", has_effect=False),
        Flag("http2-max-streams-per-connection", FlagType.INTEGER, 0, "HTTP/2 is not supported.", has_effect=False),
    ),
    "Authentication flags": (
        _file("authentication-kubeconfig", "The kubeconfig for TokenReviews. Default: the service account of the pod."),
        _switch("authentication-skip-lookup", "Do not read client CAs from the cluster."),
        _switch(
            "authentication-tolerate-lookup-failure", "Continue if client CAs cannot be read from the cluster.", True
        ),
        _duration("authentication-token-webhook-cache-ttl", "How long results of TokenReviews are cached.", 10.0),
        _file("client-ca-file", "CAs of client certificates."),
        _list("requestheader-allowed-names", "Common names of trusted proxies; empty: all."),
        _file("requestheader-client-ca-file", "CAs of proxies that send users in headers."),
        _list(
            "requestheader-extra-headers-prefix", "Prefixes of headers with extra user information.", "x-remote-extra-"
        ),
        _list("requestheader-group-headers", "Headers with the groups of the user.", "x-remote-group"),
        _list("requestheader-uid-headers", "Headers with the uid of the user."),
        _list("requestheader-username-headers", "Headers with the name of the user.", "x-remote-user"),
    ),
    "Authorization flags": (
        _file(
            "authorization-kubeconfig",
            "The kubeconfig for SubjectAccessReviews. Default: the service account of the pod.",
        ),
        _list("authorization-always-allow-paths", "Paths without authorization.", "/healthz", "/readyz", "/livez"),
        _duration("authorization-webhook-cache-authorized-ttl", "How long allowed requests are cached.", 10.0),
        _duration("authorization-webhook-cache-unauthorized-ttl", "How long denied requests are cached.", 10.0),
    ),
    "Deprecated flags": (
        _switch("contention-profiling", "There are no locks to profile.", True, has_effect=False),
        KUBECONFIG,
        _text(
            "kube-api-content-type",
            "JSON is always used.",
            "application/vnd.kubernetes.protobuf",
            has_effect=False,
        ),
        Flag("kube-api-qps", FlagType.NUMBER, 50.0, "Requests per second to the API server."),
        Flag("kube-api-burst", FlagType.INTEGER, 100, "Burst of requests to the API server."),
        _duration(
            "pod-max-in-unschedulable-pods-duration", "How long a pod stays in unschedulable pods at most.", 300.0
        ),
        _switch("profiling", "Serve profiles under /debug/pprof.", True),
    ),
    "Leader election flags": (
        *leader_election_flags("kube-scheduler"),
        _text("leader-elect-resource-lock", "The resource of the lock.", "leases"),
    ),
    "Feature gate flags": (
        _list("emulated-version", "The version is always 1.36.", has_effect=False),
        _list("feature-gates", "Features have the defaults of Kubernetes.", has_effect=False),
        _list("min-compatibility-version", "It is always 1.36.", has_effect=False),
    ),
    "Metrics flags": (
        _list("allow-metric-labels", "All values of all labels are exported.", has_effect=False),
        _file("allow-metric-labels-manifest", "The same, from a file.", has_effect=False),
        _list("disabled-metrics", "Metrics that are not exported."),
        _text("show-hidden-metrics-for-version", "There are no hidden metrics.", has_effect=False),
    ),
    "Logs flags": (
        _duration("log-flush-frequency", "Every line is written at once.", 5.0, has_effect=False),
        _text("log-json-info-buffer-size", "Nothing is buffered.", "0", has_effect=False),
        _switch("log-json-split-stream", "Everything goes to standard error.", has_effect=False),
        _text("log-text-info-buffer-size", "Nothing is buffered.", "0", has_effect=False),
        _switch("log-text-split-stream", "Everything goes to standard error.", has_effect=False),
        _text("logging-format", "text or json.", "text"),
        Flag("v", FlagType.INTEGER, 0, "Log verbosity: 2 logs every scheduling attempt, 4 everything.", short="v"),
        _list("vmodule", "Verbosity by file.", has_effect=False),
    ),
    OWN_SECTION: (
        _switch("console", "Serve the web console at /console/, and log a link that logs in."),
        _file("decision-log", "Write every scheduling decision to this SQLite file, for mooring why."),
        _file(
            "policy-config-file",
            "A Policy file instead of a configuration. Ignored with --config.",
            endings=_CONFIGURATIONS,
        ),
        _list("plugin", "Python files with plugins, or package.module:Class."),
        _file("record", "Record what the scheduler sees and does to this file, for mooring simulate --replay."),
        _text("record-size-max", "The size at which a recording ends.", "1Gi"),
        Flag("requests-in-flight-max", FlagType.INTEGER, 100, "Concurrent requests to the API server."),
    ),
}


def all_flags() -> list[Flag]:
    """All flags, sorted by name."""
    return sorted((flag for section in FLAGS.values() for flag in section), key=lambda flag: flag.name)


_SHORT_WITH_EQUALS = re.compile(r"^(-[a-z])=")


class SchedulerCommand(SectionedCommand):
    """`mooring scheduler`."""

    sections: ClassVar = {**attributes_by_section(FLAGS), "Version": ["version"]}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_SHORT_WITH_EQUALS.sub(r"\1", argument) for argument in args])


def _show_version(ctx: click.Context, param: click.Parameter, is_requested: bool) -> None:
    if is_requested:
        from mooring.kit.build import KUBERNETES_VERSION, build

        click.echo(f"mooring {build().version}, as Kubernetes {KUBERNETES_VERSION}")
        ctx.exit()


@click.command(
    cls=SchedulerCommand,
    short_help="Run the scheduler against any API server.",
    epilog="It also accepts the flags of kube-scheduler that have no effect here; docs/running.md lists them.",
    context_settings={"token_normalize_func": lambda name: name.replace("_", "-"), "max_content_width": 120},
)
@flag_options(FLAGS)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def scheduler(ctx: click.Context, /, **values: Any) -> None:
    """Assigns pods to nodes, exactly as kube-scheduler v1.36 does, with its flags, configuration file, endpoints and
    leader election.

    \b
      mooring scheduler --kubeconfig ~/.kube/config --leader-elect=false
      mooring scheduler --config scheduler.yaml --secure-port 10259
      mooring scheduler --kubeconfig ~/.kube/config --plugin my_rule.py
    """
    with loading():
        # First: after msgspec its import takes 1.5 times as long.
        import numpy  # noqa: F401

        from mooring.cli.scheduler.run import run_scheduler

        end_loading()
    flags: dict[str, FlagValue] = {flag.name: values[flag.attribute] for flag in all_flags()}
    given = frozenset(
        flag.name for flag in all_flags() if ctx.get_parameter_source(flag.attribute) is ParameterSource.COMMANDLINE
    )
    ctx.exit(run_scheduler(flags, given))
