"""The scheduler over HTTP and TLS, measured in small: it works, and the figures are figures."""

from __future__ import annotations

from bench.remote import measure


def test_a_small_run() -> None:
    figures = list(measure("plain", nodes=20, placed=30, pods=40))
    assert [figure.unit for figure in figures] == ["s", "MB", "/s", "/s", "ms", "MB"]
    assert all(figure.value > 0 for figure in figures)
