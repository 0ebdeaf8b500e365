"""Limits of the handler: what one request, and all of them together, may ask for.

Each has a name, a default, and an answer when it is reached.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What the handler lets in."""

    body_bytes_max: int = 3 * 1024 * 1024
    """Answer beyond it: 413, as kube-apiserver's limit for a body."""
    header_bytes_max: int = 64 * 1024
    """All headers together. Answer beyond it: 431."""
    requests_max: int = 400
    """Requests in progress, watches apart. Answer beyond it: 429 with Retry-After."""
    watches_max: int = 10_000
    """Watches open. Answer beyond it: 429 with Retry-After."""
    request_s_max: float = 60.0
    """How long a request may take, watches apart. Answer beyond it: 504."""
    watch_s_min: float = 1_800.0
    """How long a watch lasts at least if its client does not say; at most twice that. It just ends."""
    stalled_s_max: float = 60.0
    """How long a client of a watch or a followed log may take nothing of what is sent. Beyond it he is cut off."""
    gzip_bytes_min: int = 128 * 1024
    """Answers from this size on are compressed for clients who can read that."""
    retry_after_s: int = 1
