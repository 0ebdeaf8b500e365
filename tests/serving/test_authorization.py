"""Allowed paths, system:masters, SubjectAccessReviews."""

from __future__ import annotations

from typing import cast

import pytest

from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.serving.authentication import Caller
from mooring.serving.authorization import (
    AccessDecision,
    AllowedPathError,
    AllowedPaths,
    DelegatingAuthorizer,
    by_path,
    of_node,
)
from tests.serving.callers import Reviewer

JANE = Caller("jane", groups=("dev",))
ADMIN = Caller("root", groups=("system:masters",))


@pytest.mark.parametrize(
    ("caller", "path", "is_allowed", "questions"),
    [
        pytest.param(JANE, "/healthz", True, 0, id="what everybody may see"),
        pytest.param(JANE, "/healthz/ping", False, 1, id="a path below is another path"),
        pytest.param(JANE, "/debug/a/b", True, 0, id="everything below"),
        pytest.param(ADMIN, "/metrics", True, 0, id="an administrator"),
        pytest.param(JANE, "/metrics", True, 1, id="the API server says yes"),
        pytest.param(JANE, "/configz", False, 1, id="the API server says no"),
    ],
)
def test_who_may(caller: Caller, path: str, is_allowed: bool, questions: int) -> None:
    clock, reviewer = VirtualClock(), Reviewer(allowed={("jane", "get", "/metrics")})
    authorizer = DelegatingAuthorizer(AllowedPaths(("/healthz", "/debug/*")), cast(Client, reviewer), clock)
    assert run(authorizer.decide(caller, "get", path), clock).is_allowed is is_allowed
    assert len(reviewer.asked) == questions


def test_answers_are_kept_for_a_while() -> None:
    clock, reviewer = VirtualClock(), Reviewer(allowed={("jane", "get", "/metrics")})

    async def main() -> None:
        authorizer = DelegatingAuthorizer(AllowedPaths(()), cast(Client, reviewer), clock, allowed_s=10.0, denied_s=5.0)
        for _ in range(3):
            await authorizer.decide(JANE, "get", "/metrics")
            await authorizer.decide(JANE, "get", "/configz")
        assert len(reviewer.asked) == 2
        await clock.wait(6.0)
        await authorizer.decide(JANE, "get", "/metrics")
        await authorizer.decide(JANE, "get", "/configz")
        assert len(reviewer.asked) == 3, "the no is asked again, the yes is not"

    run(main(), clock)


def test_no_answer_is_a_no() -> None:
    clock, reviewer = VirtualClock(), Reviewer(is_away=True)
    authorizer = DelegatingAuthorizer(AllowedPaths(()), cast(Client, reviewer), clock)
    assert run(authorizer.decide(JANE, "get", "/metrics"), clock) == AccessDecision(False, "away")


def test_nobody_to_ask_is_a_no() -> None:
    clock = VirtualClock()
    assert not run(
        DelegatingAuthorizer(AllowedPaths(()), None, clock).decide(JANE, "get", "/metrics"), clock
    ).is_allowed


def test_what_the_api_server_is_asked() -> None:
    assert by_path("get", "/metrics") == {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    (node,) = of_node("here")("get", "/containerLogs/a/b/c").values()
    assert node == {"verb": "get", "version": "v1", "resource": "nodes", "subresource": "proxy", "name": "here"}


def test_a_star_stands_at_the_end() -> None:
    with pytest.raises(AllowedPathError, match=r'only trailing \* allowed in "a\*b"'):
        AllowedPaths(("/a*b",))
