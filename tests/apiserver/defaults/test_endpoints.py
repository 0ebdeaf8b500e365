"""Ports of endpoints speak TCP unless somebody says otherwise."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.endpoints import default_endpoints


def test_ports_speak_tcp() -> None:
    endpoints: Document = {"subsets": [{"ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}]}, {}]}
    default_endpoints(endpoints)
    assert endpoints["subsets"][0]["ports"] == [{"port": 1, "protocol": "TCP"}, {"port": 2, "protocol": "UDP"}]
    default_endpoints({})
