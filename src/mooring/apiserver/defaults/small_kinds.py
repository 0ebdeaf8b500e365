"""What priority classes, endpoint slices and role bindings are if nobody says otherwise.

Comes in   canonical documents
Goes out   the same, filled in place
"""

from __future__ import annotations

from mooring.api.document import Document


def default_endpoint_slice(obj: Document) -> None:
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")
