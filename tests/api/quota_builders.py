"""Builders: the pods and containers of tests of quotas."""

from __future__ import annotations

from typing import Any

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.quota import Amounts
from mooring.api.views.pod import Pod


def container(
    name: str = "c", requests: Document | None = None, limits: Document | None = None, **fields: Any
) -> Document:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


def pod(*containers: Document, metadata: Document | None = None, status: Document | None = None, **spec: Any) -> Pod:
    document = {
        "metadata": {"name": "p", "namespace": "default", **(metadata or {})},
        "spec": {"containers": list(containers), **spec},
        "status": status or {},
    }
    return convert_as(Pod, document)


def texts(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
