"""Where a kubelet serves a log: the address that kube-apiserver v1.36 would ask."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kubelets.location import log_location
from mooring.apiserver.registry.pod_log import LogOptions
from mooring.client.errors import ServerError

POD: Document = {"metadata": {"namespace": "ns", "name": "web"}}


def node(*addresses: tuple[str, str], port: int = 0) -> Document:
    listed = [{"type": type, "address": address} for type, address in addresses]
    return {"status": {"addresses": listed, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}


@pytest.mark.parametrize(
    ("found", "host"),
    [
        pytest.param(node(("InternalIP", "10.0.0.1"), ("Hostname", "n")), "n:10250", id="its name first"),
        pytest.param(node(("ExternalIP", "1.1.1.1"), ("InternalIP", "10.0.0.1")), "10.0.0.1:10250", id="inside first"),
        pytest.param(
            node(("ExternalIP", "1.1.1.1"), ("ExternalDNS", "n.example")), "n.example:10250", id="names first"
        ),
        pytest.param(node(("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2")), "10.0.0.1:10250", id="of two"),
        pytest.param(node(("InternalIP", "10.0.0.1"), port=1999), "10.0.0.1:1999", id="the port that it tells"),
        pytest.param(node(("InternalIP", "::1"), port=1999), "[::1]:1999", id="version 6"),
        pytest.param({"status": {"addresses": [{"type": "Hostname", "address": "n"}]}}, "n:10250", id="no port told"),
    ],
)
def test_which_address(found: Document, host: str) -> None:
    assert log_location(found, POD, "a", LogOptions()) == f"https://{host}/containerLogs/ns/web/a"


@pytest.mark.parametrize(
    ("found", "known"),
    [({}, "[]"), (node(("Foo", "127.0.0.1"), ("Bar", "x")), "[{Foo 127.0.0.1} {Bar x}]")],
    ids=["none at all", "of kinds that nobody knows"],
)
def test_no_address(found: Document, known: str) -> None:
    with pytest.raises(ServerError) as caught:
        log_location(found, POD, "a", LogOptions())
    message = f"no preferred addresses found; known addresses: {known}"
    assert (caught.value.message, caught.value.reason) == (message, "")


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param(LogOptions(follows=True), "follow=true", id="follow"),
        pytest.param(LogOptions(since_s=5, tail_lines=0), "sinceSeconds=5&tailLines=0", id="no lines are some"),
        pytest.param(
            LogOptions(
                is_previous=True,
                since_time="2026-01-01T00:00:00Z",
                has_timestamps=True,
                tail_lines=3,
                limit_bytes=9,
            ),
            "limitBytes=9&previous=true&sinceTime=2026-01-01T00%3A00%3A00Z&tailLines=3&timestamps=true",
            id="all others, by their names",
        ),
    ],
)
def test_what_is_asked_for(options: LogOptions, query: str) -> None:
    assert log_location(node(("Hostname", "n")), POD, "a", options).partition("?")[2] == query
