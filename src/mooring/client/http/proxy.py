"""Which proxy stands between us and the server, if any.

Comes in   the address of the server; the proxy that a kubeconfig names, or the environment
Goes out   the proxy's address, or nothing

 1. What the kubeconfig says wins over the environment.
 2. The environment speaks as it does to Go programs: HTTPS_PROXY and HTTP_PROXY by the scheme of the server, and
    NO_PROXY with names, suffixes, addresses and networks (`10.0.0.0/8`). The machine itself is never asked by proxy.
 3. A proxy speaks HTTP, openly or in secret, or SOCKS5.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

SOCKS = ("socks5", "socks5h")


def is_usable_proxy(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in ("http", "https", *SOCKS) and bool(parts.hostname)


def proxy_for(server: str, environment: Mapping[str, str]) -> str:
    """The proxy that the environment wants for a server; empty: none."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy = environment.get(name) or environment.get(name.lower()) or ""
    if not proxy or _is_here(host):
        return ""
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if any(_is_excepted(host, port, rule.strip().lower()) for rule in exceptions.split(",")):
        return ""
    return proxy if is_usable_proxy(proxy) else ""


def _is_here(host: str) -> bool:
    address = _address(host)
    return address.is_loopback if address is not None else host == "localhost"


def _is_excepted(host: str, port: int, rule: str) -> bool:
    if rule in ("", "*"):
        return rule == "*"
    address = _address(host)
    if "/" in rule:
        return address is not None and _is_in(address, rule)
    name, colon, rule_port = rule.rpartition(":")
    if colon and rule_port.isdecimal() and _address(rule) is None:
        if int(rule_port) != port:
            return False
        rule = name
    if address is not None:
        return address == _address(rule.strip("[]"))
    rule = rule.removeprefix("*")
    # `.example.com` means what lies below it, `example.com` also itself.
    return host == rule or host.endswith(rule if rule.startswith(".") else f".{rule}")


def _is_in(address: IPv4Address | IPv6Address, network: str) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
