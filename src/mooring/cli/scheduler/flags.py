"""The flags of `mooring scheduler`: those of kube-scheduler v1.36, under their names and with their defaults.

Comes in   nothing
Goes out   `FLAGS`, by section: what the command accepts and `/flagz` shows

 1. Every flag of kube-scheduler is here, so that its command line starts this scheduler, too. The help does not list
    those without effect.
 2. With `--config` the flags of the section "deprecated" are ignored, as they are there; those about leader election
    win over the file.
 3. The last section is ours: what kube-scheduler had before 1.23 (a Policy), and plugins from Python files.
"""

from __future__ import annotations

from mooring.cli.flags import Flag, Sort

_CONFIGURATIONS = (".yaml", ".yml", ".json")


def _text(name: str, text: str, default: str = "", *, has_effect: bool = True) -> Flag:
    return Flag(name, Sort.TEXT, default, text, has_effect=has_effect)


def _file(name: str, text: str, *, has_effect: bool = True, endings: tuple[str, ...] = ()) -> Flag:
    return Flag(name, Sort.FILE, "", text, has_effect=has_effect, endings=endings)


def _switch(name: str, text: str, default: bool = False, *, has_effect: bool = True) -> Flag:
    return Flag(name, Sort.SWITCH, default, text, has_effect=has_effect)


def _duration(name: str, text: str, default_s: float, *, has_effect: bool = True) -> Flag:
    return Flag(name, Sort.DURATION, default_s, text, has_effect=has_effect)


def _list(name: str, text: str, *default: str, has_effect: bool = True) -> Flag:
    return Flag(name, Sort.LIST, default, text, has_effect=has_effect)


FLAGS: dict[str, tuple[Flag, ...]] = {
    "misc": (
        _file("config", "A KubeSchedulerConfiguration: YAML or JSON.", endings=_CONFIGURATIONS),
        _text("master", "The address of the API server; wins over the kubeconfig's."),
        _file("write-config-to", "Write the whole configuration, defaults included, to this file, and end."),
    ),
    "secure serving": (
        Flag("bind-address", Sort.ADDRESS, "0.0.0.0", "Where to listen for the secure port."),
        Flag("secure-port", Sort.PORT, 10_259, "Where health, metrics and profiles are served over TLS; 0: nowhere."),
        _file("cert-dir", "Where our certificate is kept, if none is given; empty: nowhere, it is made at each start."),
        _file("tls-cert-file", "Our certificate, with its chain."),
        _file("tls-private-key-file", "Its key."),
        Flag("tls-sni-cert-key", Sort.PAIRS, (), "More certificates, for other names of this server."),
        _list("tls-cipher-suites", "Cipher suites of TLS 1.2, by their IANA names."),
        _text("tls-min-version", "VersionTLS12 or VersionTLS13; older ones are not spoken."),
        _list("tls-curve-preferences", "Key exchanges, as numbers of Go's.", has_effect=False),
        _switch("permit-address-sharing", "Listen although somebody else listens on all addresses."),
        _switch("permit-port-sharing", "Let several processes listen on one port."),
        _switch("disable-http2-serving", "HTTP/2 is not spoken anyway.", has_effect=False),
        Flag("http2-max-streams-per-connection", Sort.INTEGER, 0, "HTTP/2 is not spoken.", has_effect=False),
    ),
    "authentication": (
        _file("authentication-kubeconfig", "The API server that says who shows a token. Default: the pod's own."),
        _switch("authentication-skip-lookup", "Do not ask the cluster which authorities to trust."),
        _switch("authentication-tolerate-lookup-failure", "Go on if the cluster does not say.", True),
        _duration("authentication-token-webhook-cache-ttl", "How long an answer about a token is kept.", 10.0),
        _file("client-ca-file", "Whoever shows a certificate of these authorities is who it says."),
        _list("requestheader-allowed-names", "Proxies, by the common names of their certificates; empty: all."),
        _file("requestheader-client-ca-file", "The authorities of proxies that say for whom they ask."),
        _list("requestheader-extra-headers-prefix", "Headers with more about a user.", "x-remote-extra-"),
        _list("requestheader-group-headers", "Headers with a user's groups.", "x-remote-group"),
        _list("requestheader-uid-headers", "Headers with a user's uid."),
        _list("requestheader-username-headers", "Headers with a user's name.", "x-remote-user"),
    ),
    "authorization": (
        _file("authorization-kubeconfig", "The API server that says who may do what. Default: the pod's own."),
        _list("authorization-always-allow-paths", "What everybody may see.", "/healthz", "/readyz", "/livez"),
        _duration("authorization-webhook-cache-authorized-ttl", "How long a yes is kept.", 10.0),
        _duration("authorization-webhook-cache-unauthorized-ttl", "How long a no is kept.", 10.0),
    ),
    "deprecated": (
        _switch("contention-profiling", "There are no locks to profile.", True, has_effect=False),
        _file("kubeconfig", "Where the API server is, and who we are. Default: the pod's own service account."),
        _text(
            "kube-api-content-type",
            "JSON is spoken whatever it says.",
            "application/vnd.kubernetes.protobuf",
            has_effect=False,
        ),
        Flag("kube-api-qps", Sort.NUMBER, 50.0, "Requests a second to the API server, on average."),
        Flag("kube-api-burst", Sort.INTEGER, 100, "Requests to the API server at once."),
        _duration("pod-max-in-unschedulable-pods-duration", "A refused pod is tried again after so long.", 300.0),
        _switch("profiling", "Serve profiles under /debug/pprof.", True),
    ),
    "leader election": (
        _switch("leader-elect", "Work only while holding a lease, so that of several schedulers one works.", True),
        _duration("leader-elect-lease-duration", "How long others wait for a leader that says nothing.", 15.0),
        _duration("leader-elect-renew-deadline", "How long a leader that cannot renew its lease goes on.", 10.0),
        _text("leader-elect-resource-lock", "The kind of the lock.", "leases"),
        _text("leader-elect-resource-name", "The name of the lease.", "kube-scheduler"),
        _text("leader-elect-resource-namespace", "The namespace of the lease.", "kube-system"),
        _duration("leader-elect-retry-period", "How often the lease is renewed, or looked at.", 2.0),
    ),
    "feature gate": (
        _list("emulated-version", "It is always 1.36.", has_effect=False),
        _list("feature-gates", "Features are as Kubernetes ships them.", has_effect=False),
        _list("min-compatibility-version", "It is always 1.36.", has_effect=False),
    ),
    "metrics": (
        _list("allow-metric-labels", "All values of all labels are shown.", has_effect=False),
        _file("allow-metric-labels-manifest", "The same from a file.", has_effect=False),
        _list("disabled-metrics", "Metrics that are not to be shown."),
        _text("show-hidden-metrics-for-version", "There are no hidden metrics.", has_effect=False),
    ),
    "logs": (
        _duration("log-flush-frequency", "Every line is written at once.", 5.0, has_effect=False),
        _text("log-json-info-buffer-size", "Nothing is buffered.", "0", has_effect=False),
        _switch("log-json-split-stream", "Everything goes to standard error.", has_effect=False),
        _text("log-text-info-buffer-size", "Nothing is buffered.", "0", has_effect=False),
        _switch("log-text-split-stream", "Everything goes to standard error.", has_effect=False),
        _text("logging-format", "text or json.", "text"),
        Flag("v", Sort.INTEGER, 0, "How much is logged: 0 what matters, 2 every attempt, 4 all.", short="v"),
        _list("vmodule", "Levels by file: name=4. Here by module.", has_effect=False),
    ),
    "mooring": (
        _file(
            "policy-config-file",
            "An older Policy instead of a configuration. Ignored if there is a --config.",
            endings=_CONFIGURATIONS,
        ),
        _list("plugin", "Python files with plugins of your own, or package.module:Class."),
        Flag("requests-in-flight-max", Sort.INTEGER, 100, "Requests to the API server under way together."),
    ),
}


def all_flags() -> list[Flag]:
    """Every flag, in the order of its name."""
    return sorted((flag for section in FLAGS.values() for flag in section), key=lambda flag: flag.name)
