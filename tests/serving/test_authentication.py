"""Authentication and authorization of the secure port."""

from __future__ import annotations

from typing import cast

import pytest

from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.serving.authentication import (
    CACHED_MAX,
    DelegatingAuthenticator,
    ExpiringCache,
    ProxyRules,
    Trust,
)
from mooring.serving.authorization import (
    AllowedPathError,
    AllowedPaths,
    AuthorizationDecision,
    DelegatingAuthorizer,
    by_path,
    of_node,
)
from mooring.serving.users import User, anonymous
from tests.serving.callers import Authority, Reviewer

CLIENTS, PROXIES, UNTRUSTED = Authority("clients"), Authority("proxies"), Authority("strangers")
RULES = ProxyRules(allowed_names=("front",), uid_headers=("x-remote-uid",))
TRUST = Trust((CLIENTS.certificate,), (PROXIES.certificate,), RULES)
JANE: dict[str, object] = {"username": "jane", "uid": "7", "groups": ["dev"], "extra": {"k": ["v"]}}
JANE_HEADERS = {"x-remote-user": ["jane"], "x-remote-group": ["dev", "ops"], "x-remote-extra-a%2fb": ["c"]}
AUTHENTICATED = "system:authenticated"


def test_an_entry_of_the_expiring_cache_is_valid_for_its_time() -> None:
    clock = VirtualClock()

    async def main() -> None:
        cache: ExpiringCache[str, int | None] = ExpiringCache(clock)
        assert cache.get("a") == (False, None)
        cache.put("a", None, 10.0)
        assert cache.get("a") == (True, None)
        await clock.wait(10.0)
        assert cache.get("a") == (False, None)
        cache.put("a", 2, 10.0)
        assert cache.get("a") == (True, 2)

    run(main(), clock)


def test_the_oldest_entry_is_evicted_at_the_limit() -> None:
    cache: ExpiringCache[int, int] = ExpiringCache(VirtualClock())
    for number in range(CACHED_MAX + 1):
        cache.put(number, number, 1.0)
    assert cache.get(0) == (False, None)
    assert cache.get(1) == (True, 1)


@pytest.mark.parametrize(
    ("certificate", "headers", "caller"),
    [
        pytest.param(None, {}, anonymous(), id="no credentials"),
        pytest.param(
            CLIENTS.client("bob", ["a", "b"]), {}, User("bob", groups=("a", "b", AUTHENTICATED)), id="a certificate"
        ),
        pytest.param(CLIENTS.client("", ["a"]), {}, None, id="a certificate without a name"),
        pytest.param(CLIENTS.client("bob", days=-1), {}, None, id="an expired certificate"),
        pytest.param(UNTRUSTED.client("bob"), {}, anonymous(), id="a certificate of an unknown authority"),
        pytest.param(
            PROXIES.client("front"),
            {**JANE_HEADERS, "x-remote-uid": ["7"]},
            User("jane", "7", ("dev", "ops", AUTHENTICATED), {"a/b": ("c",)}),
            id="headers of a trusted proxy",
        ),
        pytest.param(PROXIES.client("other"), JANE_HEADERS, anonymous(), id="a proxy that is not allowed"),
        pytest.param(
            CLIENTS.client("front"),
            JANE_HEADERS,
            User("front", groups=(AUTHENTICATED,)),
            id="proxy headers of a client",
        ),
        pytest.param(None, JANE_HEADERS, anonymous(), id="proxy headers without a certificate"),
        pytest.param(
            None,
            {"authorization": ["Bearer good"]},
            User("jane", "7", ("dev", AUTHENTICATED), {"k": ("v",)}),
            id="a token",
        ),
        pytest.param(
            None,
            {"authorization": ["bearer good"]},
            User("jane", "7", ("dev", AUTHENTICATED), {"k": ("v",)}),
            id="a token, scheme in lower case",
        ),
        pytest.param(None, {"authorization": ["Bearer bad"]}, None, id="a bad token"),
        pytest.param(None, {"authorization": ["Basic YTpi"]}, anonymous(), id="basic authentication"),
    ],
)
def test_the_caller_is_determined_by_certificate_headers_or_token(
    certificate: bytes | None, headers: dict[str, list[str]], caller: User | None
) -> None:
    clock = VirtualClock()
    client = cast(Client, Reviewer({"good": JANE}))
    found = run(DelegatingAuthenticator(TRUST, client, clock).caller(certificate, headers), clock)
    assert found == caller


def test_results_of_token_reviews_are_cached() -> None:
    clock, reviewer = VirtualClock(), Reviewer({"good": JANE})

    async def main() -> None:
        authenticator = DelegatingAuthenticator(Trust(), cast(Client, reviewer), clock, cache_s=10.0)
        for token in ("good", "bad"):
            for _ in range(3):
                await authenticator.caller(None, {"authorization": [f"Bearer {token}"]})
        assert len(reviewer.requests) == 2
        await clock.wait(10.0)
        await authenticator.caller(None, {"authorization": ["Bearer good"]})
        assert len(reviewer.requests) == 3

    run(main(), clock)


def test_a_failed_token_review_rejects_the_token_and_is_not_cached() -> None:
    clock, reviewer = VirtualClock(), Reviewer({"good": JANE}, is_away=True)

    async def main() -> None:
        authenticator = DelegatingAuthenticator(Trust(), cast(Client, reviewer), clock)
        assert await authenticator.caller(None, {"authorization": ["Bearer good"]}) is None
        reviewer.is_away = False
        assert await authenticator.caller(None, {"authorization": ["Bearer good"]}) is not None

    run(main(), clock)


def test_without_an_api_server_a_token_is_anonymous() -> None:
    clock = VirtualClock()
    found = run(DelegatingAuthenticator(Trust(), None, clock).caller(None, {"authorization": ["Bearer good"]}), clock)
    assert found == anonymous()


# --- Allowed paths, system:masters, SubjectAccessReviews -------------------------------------------------------------


AUTHORIZED_JANE = User("jane", groups=("dev",))
ADMIN = User("root", groups=("system:masters",))


@pytest.mark.parametrize(
    ("caller", "path", "is_allowed", "reviews"),
    [
        pytest.param(AUTHORIZED_JANE, "/healthz", True, 0, id="an allowed path"),
        pytest.param(AUTHORIZED_JANE, "/healthz/ping", False, 1, id="a path below an allowed path"),
        pytest.param(AUTHORIZED_JANE, "/debug/a/b", True, 0, id="a path below an allowed wildcard"),
        pytest.param(ADMIN, "/metrics", True, 0, id="system:masters"),
        pytest.param(AUTHORIZED_JANE, "/metrics", True, 1, id="allowed by the API server"),
        pytest.param(AUTHORIZED_JANE, "/configz", False, 1, id="rejected by the API server"),
    ],
)
def test_authorization_of_paths(caller: User, path: str, is_allowed: bool, reviews: int) -> None:
    clock, reviewer = VirtualClock(), Reviewer(allowed={("jane", "get", "/metrics")})
    authorizer = DelegatingAuthorizer(AllowedPaths(("/healthz", "/debug/*")), cast(Client, reviewer), clock)
    assert run(authorizer.decide(caller, "get", path), clock).is_allowed is is_allowed
    assert len(reviewer.requests) == reviews


def test_results_of_access_reviews_are_cached() -> None:
    clock, reviewer = VirtualClock(), Reviewer(allowed={("jane", "get", "/metrics")})

    async def main() -> None:
        authorizer = DelegatingAuthorizer(AllowedPaths(()), cast(Client, reviewer), clock, allowed_s=10.0, denied_s=5.0)
        for _ in range(3):
            await authorizer.decide(AUTHORIZED_JANE, "get", "/metrics")
            await authorizer.decide(AUTHORIZED_JANE, "get", "/configz")
        assert len(reviewer.requests) == 2
        await clock.wait(6.0)
        await authorizer.decide(AUTHORIZED_JANE, "get", "/metrics")
        await authorizer.decide(AUTHORIZED_JANE, "get", "/configz")
        assert len(reviewer.requests) == 3, "only the expired rejection is reviewed again"

    run(main(), clock)


def test_a_failed_access_review_is_a_rejection() -> None:
    clock, reviewer = VirtualClock(), Reviewer(is_away=True)
    authorizer = DelegatingAuthorizer(AllowedPaths(()), cast(Client, reviewer), clock)
    assert run(authorizer.decide(AUTHORIZED_JANE, "get", "/metrics"), clock) == AuthorizationDecision(False, "away")


def test_without_an_api_server_paths_are_rejected() -> None:
    clock = VirtualClock()
    assert not run(
        DelegatingAuthorizer(AllowedPaths(()), None, clock).decide(AUTHORIZED_JANE, "get", "/metrics"), clock
    ).is_allowed


def test_attributes_of_access_reviews() -> None:
    assert by_path("get", "/metrics") == {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    (node,) = of_node("here")("get", "/containerLogs/a/b/c").values()
    assert node == {"verb": "get", "version": "v1", "resource": "nodes", "subresource": "proxy", "name": "here"}


def test_a_wildcard_must_be_at_the_end_of_a_path() -> None:
    with pytest.raises(AllowedPathError, match=r'only trailing \* allowed in "a\*b"'):
        AllowedPaths(("/a*b",))
