"""What is wrong with the names and the network of a pod.

Comes in   a pod's spec
Goes out   faults
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.addresses import ip_faults
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required, too_long
from mooring.apiserver.validation.names import dns_subdomain_faults, underscored_subdomain_faults
from mooring.apiserver.validation.pod_options import PodOptions

NAME_SERVERS_MAX = 3
SEARCH_PATHS_MAX = 32
SEARCH_CHARACTERS_MAX = 2048
HOSTNAME_OVERRIDE_LENGTH_MAX = 64

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def dns_policy_faults(policy: str, path: str) -> list[Fault]:
    if policy in _DNS_POLICIES:
        return []
    return [not_supported(path, policy, _DNS_POLICIES)] if policy else [required(path)]


def dns_config_faults(config: Document | None, policy: str, path: str) -> list[Fault]:
    """What is wrong with `dnsConfig`; it must be there if the pod wants no other names."""
    if policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", detail)]
    if not config:
        return []
    faults: list[Fault] = []
    servers, searches = config.get("nameservers") or (), config.get("searches") or ()
    if len(servers) > NAME_SERVERS_MAX:
        detail = f"must not have more than {NAME_SERVERS_MAX} nameservers"
        faults.append(invalid(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        faults += ip_faults(server, f"{path}.nameservers[{index}]")
    if len(searches) > SEARCH_PATHS_MAX:
        detail = f"must not have more than {SEARCH_PATHS_MAX} search paths"
        faults.append(invalid(f"{path}.searches", searches, detail))
    if len(" ".join(searches).encode()) > SEARCH_CHARACTERS_MAX:
        detail = f"must not have more than {SEARCH_CHARACTERS_MAX} characters (including spaces) in the search list"
        faults.append(invalid(f"{path}.searches", searches, detail))
    for index, search in enumerate(searches):
        domain = search.removesuffix(".")
        texts = underscored_subdomain_faults(domain) if search != "." else ()
        faults += [invalid(f"{path}.searches[{index}]", domain, text) for text in texts]
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            faults.append(required(f"{path}.options[{index}]", "must not be empty"))
    return faults


def host_network_faults(spec: Document, path: str, options: PodOptions) -> list[Fault]:
    """On the network of the host every port is a port of the host. A template may leave that open."""
    if not spec.get("hostNetwork"):
        return []
    detail = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{path}.containers[{index}].ports[{position}].hostPort", port.get("hostPort", 0), detail)
        for index, container in enumerate(spec.get("containers") or ())
        for position, port in enumerate(container.get("ports") or ())
        if (options.is_pod or port.get("hostPort")) and port.get("hostPort", 0) != port.get("containerPort", 0)
    ]


def hostname_override_faults(spec: Document, path: str) -> list[Fault]:
    override = spec.get("hostnameOverride")
    if override is None:
        return []
    faults: list[Fault] = []
    here = f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        faults.append(forbidden(here, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        faults.append(forbidden(here, "may not be specified when hostNetwork is true"))
    if len(override.encode()) > HOSTNAME_OVERRIDE_LENGTH_MAX:
        faults.append(too_long(here, HOSTNAME_OVERRIDE_LENGTH_MAX))
    return faults + [invalid(here, override, text) for text in dns_subdomain_faults(override)]


def host_aliases_faults(spec: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        faults += ip_faults(alias.get("ip", ""), f"{path}[{index}].ip")
        for position, name in enumerate(alias.get("hostnames") or ()):
            here = f"{path}[{index}].hostnames[{position}]"
            faults += [invalid(here, name, text) for text in dns_subdomain_faults(name)]
    return faults
