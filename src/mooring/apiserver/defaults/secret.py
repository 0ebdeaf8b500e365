"""Defaults of secrets: opaque, and what was written as text becomes data like the rest.

1. `stringData` is for writing only: it goes into `data`, over what is there, and is never stored.
"""

from __future__ import annotations

from base64 import b64encode

from mooring.api.document import Document


def default_secret(secret: Document) -> None:
    if not secret.get("type"):
        secret["type"] = "Opaque"
    texts = secret.pop("stringData", None)
    if texts:
        data = dict(secret.get("data") or {})
        data.update({key: b64encode(text.encode()).decode() for key, text in texts.items()})
        secret["data"] = data
