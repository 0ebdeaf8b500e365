"""Hostile requests get past the first limits: otherwise they would cost nothing, and test nothing."""

from __future__ import annotations

from mooring.apiserver.http.request import RequestLimits
from mooring.serving.http.parser import ServerLimits
from tests.soak.hostile import hostile_requests


def test_bodies_and_paths_are_within_the_limits_of_a_request() -> None:
    for request in hostile_requests():
        assert len(request.body or b"") <= RequestLimits().body_bytes_max, request.name
        assert len(request.path) <= ServerLimits().target_bytes_max, request.name


def test_they_leave_nothing_behind() -> None:
    assert [each.name for each in hostile_requests() if each.method != "GET" and "dryRun=All" not in each.path] == []


def test_each_has_a_name_of_its_own() -> None:
    names = [each.name for each in hostile_requests()]
    assert len(names) == len(set(names))
