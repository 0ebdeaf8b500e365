"""The proxy of the environment is the one that a Go program would take."""

from __future__ import annotations

import pytest

from mooring.client.http.proxy import is_usable_proxy, proxy_for

BOTH = {"HTTPS_PROXY": "http://proxy:3128", "HTTP_PROXY": "http://plain:3128"}


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        pytest.param("https://api:6443", BOTH, "http://proxy:3128", id="by the scheme of the server"),
        pytest.param("http://api:8080", BOTH, "http://plain:3128", id="which may be plain"),
        pytest.param("https://api:6443", {"https_proxy": "proxy:3128"}, "http://proxy:3128", id="in small letters"),
        pytest.param("https://api:6443", {}, "", id="none"),
        pytest.param("https://127.0.0.1:6443", BOTH, "", id="not to this machine"),
        pytest.param("https://localhost", BOTH, "", id="nor by name"),
        pytest.param("https://api:6443", {"HTTPS_PROXY": "socks5://p:1"}, "socks5://p:1", id="which may speak SOCKS"),
        pytest.param("https://api:6443", {"HTTPS_PROXY": "ftp://proxy:21"}, "", id="but no foreign tongue"),
    ],
)
def test_which_proxy(server: str, environment: dict[str, str], expected: str) -> None:
    assert proxy_for(server, environment) == expected


@pytest.mark.parametrize(
    ("server", "exceptions", "is_excepted"),
    [
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://11.1.2.3:6443", "10.0.0.0/8", False),
        ("https://api.example.com", "10.0.0.0/8", False),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://[fd00::1]:6443", "fd00::1", True),
        ("https://api.example.com", "example.com", True),
        ("https://example.com", "example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://api.example.com", "*.example.com", True),
        ("https://badexample.com", "example.com", False),
        ("https://api.example.com", "a, *", True),
        ("https://api.example.com:6443", "example.com:6443", True),
        ("https://api.example.com:6443", "example.com:443", False),
        ("https://api.example.com", "", False),
        ("https://10.1.2.3", "10.0.0.0/99", False),
    ],
)
def test_exceptions(server: str, exceptions: str, is_excepted: bool) -> None:
    assert (proxy_for(server, {**BOTH, "NO_PROXY": exceptions}) == "") is is_excepted


def test_what_is_a_proxy() -> None:
    assert is_usable_proxy("https://proxy:3128")
    assert is_usable_proxy("socks5h://proxy:1080")
    assert not is_usable_proxy("ftp://proxy:21")
    assert not is_usable_proxy("http://")
