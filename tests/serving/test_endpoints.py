"""Flags and status, as kube-scheduler lays them out."""

from __future__ import annotations

from mooring.serving.endpoints import configuration_page, flags_page, status_page


def test_flags_stand_in_order() -> None:
    said = flags_page("kube-scheduler", {"v": "2", "config": ""}).body.decode()
    assert said.startswith("\nkube-scheduler flagz\nWarning: This endpoint is not meant to be machine parseable")
    assert said.endswith("\nconfig=\nv=2\n")


def test_status() -> None:
    said = status_page(
        "kube-scheduler",
        started_wall_s=1_767_225_600.0,
        up_s=3 * 3600 + 4 * 60 + 5.9,
        version="0.1.0",
        emulates="1.36",
        paths=("/readyz", "/healthz"),
    ).body.decode()
    assert "Started= Thu Jan  1 00:00:00 UTC 2026\nUp= 3 hr 04 min 05 sec\n" in said
    assert said.endswith("Binary version= 0.1.0\nEmulation version= 1.36\nPaths= /healthz /readyz\n")


def test_configuration() -> None:
    assert configuration_page({"a": 1}).body == b'{"componentconfig": {"a": 1}}'
