"""Nesting: how deep a body may be.

Comes in   a body as bytes, and as it was read
Goes out   a `BodySyntaxError` if it is too deep

 1. Go allows 10,000 levels. Everybody behind us recurses, Python's stack has room for 1,000 calls, and no kind is that
    deep: so we allow fewer.
 2. Nearly every body has fewer brackets than levels allowed, and is not walked.
"""

from __future__ import annotations

from mooring.apiserver.wire.json_syntax import BodySyntaxError

NESTING_MAX = 200


def check_nesting(data: bytes, value: object) -> None:
    """Raises `BodySyntaxError` if a value that was read from these bytes has too many levels."""
    if data.count(b"{") + data.count(b"[") <= NESTING_MAX:
        return
    level = [value]
    for _ in range(NESTING_MAX):
        level = [item for holder in level for item in _held(holder) if isinstance(item, dict | list)]
        if not level:
            return
    raise BodySyntaxError(f"exceeded max depth of {NESTING_MAX}")


def _held(holder: object) -> list[object]:
    if isinstance(holder, dict):
        return list(holder.values())
    return holder if isinstance(holder, list) else []
