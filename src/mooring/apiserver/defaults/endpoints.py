"""Defaults of Endpoints: ports speak TCP."""

from __future__ import annotations

from mooring.api.document import Document


def default_endpoints(endpoints: Document) -> None:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")
