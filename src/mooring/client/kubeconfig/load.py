"""The connection of a kubeconfig context, or of the service account of a pod.

Inputs: $KUBECONFIG, ~/.kube/config or a path; optionally the name of a context and the address of a server. Output: a
`Connection`; or a `KubeconfigError` of one line that names the file, the entry and the field.

1. `load_connection` searches as kubectl does. `component_connection` searches as Kubernetes' components do, and then
   where kubectl does.
2. A server is verified unless the configuration turns it off explicitly.
3. As in kubectl, a plug-in is used only without a token, password or certificate, and credentials are not sent over
   plain HTTP.
4. A contradictory configuration is an error.

The connection of a pod: inputs are the environment of the pod, and the directory in which the kubelet mounts the
service account. Output: a `Connection` to the API server of the cluster. The kubelet renews the token in its file;
`FileCredentials` reads it again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec.structs import replace as replace_fields

from mooring.client.http.connection import (
    Connection,
    Credentials,
    FileCredentials,
    Identity,
    Pem,
    StaticCredentials,
    basic,
)
from mooring.client.http.proxy import is_usable_proxy
from mooring.client.kubeconfig.entries import (
    ClusterEntry,
    ContextEntry,
    Kubeconfig,
    KubeconfigError,
    Named,
    UserEntry,
    merged,
    read_kubeconfig,
)
from mooring.client.kubeconfig.exec import API_VERSIONS, EXTENSION, ExecCredentials
from mooring.kit.clock import Clock

_EXEC_MODES = ("Never", "IfAvailable", "Always")
_HEADER_KEY_LETTERS = "!#$&'*+-.^_`|~"
"""Characters of a header name besides letters and digits. The percent sign begins an escape."""


def load_connection(
    clock: Clock,
    *,
    kubeconfig: str = "",
    context: str = "",
    master: str = "",
    environment: Mapping[str, str] | None = None,
) -> Connection:
    """As kubectl: the named file, or those of $KUBECONFIG, or ~/.kube/config; in a pod its service account."""
    variables = os.environ if environment is None else environment
    config = _explicit(kubeconfig) if kubeconfig else merged(_present(default_files(variables)))
    if config.is_empty and not context:
        if master:
            return Connection(_server_of(master, is_tls=False))
        if is_in_cluster(variables):
            return in_cluster_connection(clock, variables)
        raise KubeconfigError("no configuration was found: name a kubeconfig, or the address of a server")
    return connection_of(config, clock, context=context, master=master, environment=variables)


def component_connection(
    clock: Clock, *, kubeconfig: str = "", master: str = "", environment: Mapping[str, str] | None = None
) -> Connection:
    """The named file, the address of a server or both; without either the files of $KUBECONFIG, else the service
    account of the pod, else ~/.kube/config."""
    variables = os.environ if environment is None else environment
    if kubeconfig or master:
        return load_connection(clock, kubeconfig=kubeconfig, master=master, environment=_without_files(variables))
    if is_in_cluster(variables) and not variables.get("KUBECONFIG"):
        return in_cluster_connection(clock, variables)
    config = merged(_present(default_files(variables)))
    if config.is_empty:
        raise KubeconfigError(
            f"found no kubeconfig ({searched_files(variables)}), and this is not a pod with a service account; "
            "name one with --kubeconfig, or a server with --master"
        )
    return connection_of(config, clock, environment=variables)


def searched_files(environment: Mapping[str, str]) -> str:
    """For messages: where a kubeconfig was looked for."""
    named = ", ".join(default_files(environment)) or "$HOME/.kube/config"
    return f"$KUBECONFIG names {named}" if environment.get("KUBECONFIG") else f"$KUBECONFIG is not set, no {named}"


def default_files(environment: Mapping[str, str]) -> Sequence[str]:
    """The paths of kubeconfig files, in order of precedence."""
    listed = environment.get("KUBECONFIG", "")
    if listed:
        return list(dict.fromkeys(file for file in listed.split(os.pathsep) if file))
    home = environment.get("HOME", "")
    return [str(Path(home) / ".kube" / "config")] if home else []


def connection_of(
    config: Kubeconfig, clock: Clock, *, context: str = "", master: str = "", environment: Mapping[str, str]
) -> Connection:
    """The connection of one context. Raises `KubeconfigError`."""
    chosen = _chosen_context(config, context)
    cluster = _referred(config, chosen, "cluster", chosen.entry.cluster, config.clusters)
    user = _referred(config, chosen, "user", chosen.entry.user, config.users)
    connection = _connection_to(cluster, master)
    credentials: Credentials = StaticCredentials()
    _check_user(user)
    if connection.is_secure:
        credentials = _credentials_of(user, cluster, connection, clock, environment)
    return replace(
        connection,
        credentials=credentials,
        impersonation=_impersonation(user.entry),
        namespace=chosen.entry.namespace or "default",
    )


# --- files and contexts ------------------------------------------------------------------------------------------


def _explicit(file: str) -> Kubeconfig:
    try:
        return read_kubeconfig(file)
    except FileNotFoundError:
        raise KubeconfigError(f"{file}: there is no such file") from None


def _present(files: Sequence[str]) -> list[Kubeconfig]:
    configs = []
    for file in files:
        try:
            configs.append(read_kubeconfig(file))
        except FileNotFoundError:
            continue  # as kubectl: of several files some may be missing
    return configs


def _without_files(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environment.items() if name not in ("KUBECONFIG", "HOME")}


def _chosen_context(config: Kubeconfig, requested: str) -> Named[ContextEntry]:
    files = ", ".join(config.files) or "kubeconfig"
    name = requested or config.current_context
    if not name:
        raise KubeconfigError(f"{files}: current-context: no context is chosen; there are {_names(config.contexts)}")
    chosen = config.contexts.get(name)
    if chosen is None:
        raise KubeconfigError(f"{files}: there is no context {name!r}; there are {_names(config.contexts)}")
    return chosen


def _referred(
    config: Kubeconfig, context: Named[ContextEntry], field: str, name: str, entries: Mapping[str, Any]
) -> Any:
    if not name:
        raise context.wrong(field, f"names no {field}; there are {_names(entries)}")
    if name not in entries:
        raise context.wrong(field, f"there is no {field} {name!r}; there are {_names(entries)}")
    return entries[name]


def _names(entries: Mapping[str, object]) -> str:
    return ", ".join(sorted(entries)) or "none"


# --- cluster -----------------------------------------------------------------------------------------------------


def _connection_to(cluster: Named[ClusterEntry], master: str) -> Connection:
    entry = cluster.entry
    if entry.certificate_authority and entry.certificate_authority_data:
        raise cluster.wrong("certificate-authority", "is set beside certificate-authority-data; expected one of them")
    authority = cluster.decoded("certificate-authority-data", entry.certificate_authority_data)
    if entry.certificate_authority:
        authority = _file_content(cluster, "certificate-authority", entry.certificate_authority)
    if entry.insecure_skip_tls_verify and authority:
        raise cluster.wrong("insecure-skip-tls-verify", "is set beside a certificate authority; expected one of them")
    if not (master or entry.server):
        raise cluster.wrong("server", "expected the address of the API server, found nothing")
    if entry.proxy_url and not is_usable_proxy(entry.proxy_url):
        raise cluster.wrong("proxy-url", f"expected http://…, https://… or socks5://…, found {entry.proxy_url!r}")
    try:
        server = _server_of(master or entry.server, is_tls=bool(authority or entry.insecure_skip_tls_verify))
    except KubeconfigError as error:
        raise cluster.wrong("server", str(error)) from None
    return Connection(
        server=server,
        authority=authority,
        is_server_unverified=entry.insecure_skip_tls_verify,
        server_name=entry.tls_server_name,
        proxy=entry.proxy_url,
    )


def _server_of(address: str, *, is_tls: bool) -> str:
    """The normalized URL of a server. Without a scheme it is HTTPS only if the entry has TLS settings."""
    url = address if "://" in address else f"{'https' if is_tls else 'http'}://{address}"
    wrong = KubeconfigError(f"expected an address such as https://10.0.0.1:6443, found {address!r}")
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            raise wrong
    except ValueError:  # brackets that hold no IPv6 address, or a port that is none
        raise wrong from None
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


# --- user --------------------------------------------------------------------------------------------------------


def _check_user(user: Named[UserEntry]) -> None:
    entry = user.entry
    if entry.token and (entry.username or entry.password):
        raise user.wrong("token", "is set beside username and password; expected one of them")
    if entry.client_certificate and entry.client_certificate_data:
        raise user.wrong("client-certificate", "is set beside client-certificate-data; expected one of them")
    if entry.client_key and entry.client_key_data:
        raise user.wrong("client-key", "is set beside client-key-data; expected one of them")
    if _has_certificate(entry) and not (entry.client_key or entry.client_key_data):
        raise user.wrong("client-key", "is missing: the client certificate is of no use without it")
    if entry.auth_provider is not None:
        raise user.wrong("auth-provider", "was removed from Kubernetes in 1.26; use an exec plug-in")
    if not entry.impersonate and (entry.impersonate_uid or entry.impersonate_groups or entry.impersonate_user_extra):
        raise user.wrong("as", "is missing: a uid, groups or extras are those of a user in whose name we act")
    if entry.exec is not None:
        _check_plugin(user)


def _check_plugin(user: Named[UserEntry]) -> None:
    plugin = user.entry.exec
    assert plugin is not None
    if not plugin.command:
        raise user.wrong("exec.command", "expected a program, found nothing")
    if plugin.api_version not in API_VERSIONS:
        raise user.wrong("exec.apiVersion", f"expected {' or '.join(API_VERSIONS)}, found {plugin.api_version!r}")
    if any(not variable.name for variable in plugin.env):
        raise user.wrong("exec.env", "expected a name for each variable")
    # Only v1beta1 may omit the mode.
    modes = _EXEC_MODES if plugin.api_version == API_VERSIONS[0] else (*_EXEC_MODES, "")
    if plugin.interactive_mode not in modes:
        found = plugin.interactive_mode
        raise user.wrong("exec.interactiveMode", f"expected {', '.join(_EXEC_MODES)}, found {found!r}")


def _credentials_of(
    user: Named[UserEntry],
    cluster: Named[ClusterEntry],
    connection: Connection,
    clock: Clock,
    environment: Mapping[str, str],
) -> Credentials:
    entry = user.entry
    certificate = Pem(
        user.decoded("client-certificate-data", entry.client_certificate_data), user.path(entry.client_certificate)
    )
    key = Pem(user.decoded("client-key-data", entry.client_key_data), user.path(entry.client_key))
    token_file = user.path(entry.token_file)
    _check_files(user, (("client-certificate", certificate), ("client-key", key)))
    if token_file and not entry.token:
        _file_content(user, "tokenFile", entry.token_file)
    authorization = basic(entry.username, entry.password) if entry.username or entry.password else ""
    if authorization and not _has_certificate(entry):
        return StaticCredentials(Identity(authorization))
    if entry.token or token_file or _has_certificate(entry):
        return FileCredentials(
            clock,
            authorization=authorization,
            token=entry.token,
            token_file=token_file,
            certificate=certificate,
            key=key,
        )
    if entry.exec is None:
        return StaticCredentials()
    command = entry.exec.command
    plugin = replace_fields(entry.exec, command=user.path(command) if "/" in command else command)
    return ExecCredentials(plugin, clock, cluster=_cluster_info(cluster.entry, connection), environment=environment)


def _has_certificate(entry: UserEntry) -> bool:
    return bool(entry.client_certificate or entry.client_certificate_data)


def _check_files(user: Named[UserEntry], files: Sequence[tuple[str, Pem]]) -> None:
    for field, pem in files:
        if pem.path:
            _file_content(user, field, pem.path)


def _file_content(named: Named[Any], field: str, path: str) -> bytes:
    try:
        return Path(named.path(path)).read_bytes()
    except OSError as error:
        raise named.wrong(field, f"{path} cannot be read: {error.strerror}") from None
    except ValueError:  # the path has a zero byte
        raise named.wrong(field, f"{path!r} is not the path of a file") from None


def _cluster_info(entry: ClusterEntry, connection: Connection) -> Mapping[str, Any]:
    """The cluster information for a plug-in, if its entry asks for it (`provideClusterInfo`)."""
    info: dict[str, Any] = {
        "server": entry.server,
        "tls-server-name": entry.tls_server_name,
        "insecure-skip-tls-verify": entry.insecure_skip_tls_verify,
        "certificate-authority-data": connection.authority,
        "proxy-url": entry.proxy_url,
        "disable-compression": entry.disable_compression,
    }
    info = {name: value for name, value in info.items() if value}
    info["config"] = next((extension.extension for extension in entry.extensions if extension.name == EXTENSION), None)
    return info


def _impersonation(entry: UserEntry) -> list[tuple[str, str]]:
    if not entry.impersonate:
        return []
    headers = [("Impersonate-User", entry.impersonate)]
    if entry.impersonate_uid:
        headers.append(("Impersonate-Uid", entry.impersonate_uid))
    headers += [("Impersonate-Group", group) for group in entry.impersonate_groups]
    for key, values in entry.impersonate_user_extra.items():
        name = f"Impersonate-Extra-{quote(key.lower(), safe=_HEADER_KEY_LETTERS)}"
        headers += [(name, value) for value in values]
    return headers


# --- the service account of a pod -----------------------------------------------------------------------------


SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"

logger = logging.getLogger(__name__)


def is_in_cluster(environment: Mapping[str, str]) -> bool:
    """Whether the process runs in a pod, by its environment."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST") and environment.get("KUBERNETES_SERVICE_PORT"))


def in_cluster_connection(
    clock: Clock, environment: Mapping[str, str], *, folder: str = SERVICE_ACCOUNT_FOLDER
) -> Connection:
    """Raises `KubeconfigError`."""
    if not is_in_cluster(environment):
        raise KubeconfigError(
            "unable to load in-cluster configuration, "
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined; or name a kubeconfig"
        )
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    token_file = Path(folder) / "token"
    if not token_file.is_file():
        raise KubeconfigError(f"{token_file}: there is no such file; is a service account mounted into this pod?")
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authority=_content(Path(folder) / "ca.crt"),
        credentials=FileCredentials(clock, token_file=str(token_file)),
        namespace=_content(Path(folder) / "namespace").decode().strip() or "default",
    )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        # As client-go: the certificate of the server may be known to the system.
        logger.error("%s cannot be read: %s", file, error.strerror)
        return b""
