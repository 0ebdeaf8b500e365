"""Trusted authorities from files and from the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.serving.authentication import ProxyRules
from mooring.serving.authorities import LOOK_AGAIN_S, Authorities, AuthoritiesError, AuthorityFiles
from tests.serving.callers import Authority, Reviewer

CLIENTS, PROXIES = Authority("clients"), Authority("proxies")
PUBLISHED = {
    "client-ca-file": CLIENTS.pem.decode(),
    "requestheader-client-ca-file": PROXIES.pem.decode(),
    "requestheader-allowed-names": '["front-proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}


def test_as_the_cluster_says() -> None:
    clock, told = VirtualClock(), list[bytes]()
    authorities = Authorities(
        AuthorityFiles(), cast(Client, Reviewer(config_map=PUBLISHED)), clock, trust_in_tls=told.append
    )
    run(authorities.look_up(), clock)
    trust = authorities.trust
    assert [each.subject for each in trust.client_authorities] == [CLIENTS.certificate.subject]
    assert [each.subject for each in trust.proxy_authorities] == [PROXIES.certificate.subject]
    assert trust.proxy == ProxyRules(
        ("front-proxy",), ("x-remote-user",), ("x-remote-uid",), ("x-remote-group",), ("x-remote-extra-",)
    )
    assert told == [PUBLISHED[name].encode() for name in ("client-ca-file", "requestheader-client-ca-file")]


def test_files_win(tmp_path: Path) -> None:
    clock, reviewer = VirtualClock(), Reviewer(config_map=PUBLISHED)
    other = Authority("other")
    (tmp_path / "ca").write_bytes(other.pem)
    files = AuthorityFiles(str(tmp_path / "ca"), str(tmp_path / "ca"))
    authorities = Authorities(files, cast(Client, reviewer), clock, trust_in_tls=lambda pem: None)
    run(authorities.look_up(), clock)
    assert [each.subject for each in authorities.trust.client_authorities] == [other.certificate.subject]
    assert reviewer.asked == []


def test_the_cluster_is_asked_again() -> None:
    clock, reviewer = VirtualClock(), Reviewer()

    async def main() -> None:
        authorities = Authorities(AuthorityFiles(), cast(Client, reviewer), clock, trust_in_tls=lambda pem: None)
        with pytest.raises(AuthoritiesError, match="reading the ConfigMap kube-system"):
            await authorities.look_up()
        async with TaskGroup("looking") as group:
            group.start_background(authorities.keep_looking(), name="looking")
            reviewer.config_map = PUBLISHED
            await clock.wait(LOOK_AGAIN_S + 1)
        assert authorities.trust.client_authorities

    run(main(), clock)


@pytest.mark.parametrize(("content", "complaint"), [(None, "cannot be read"), (b"x", "has no valid certificates")])
def test_a_file_that_is_of_no_use(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    if content is not None:
        (tmp_path / "ca").write_bytes(content)
    with pytest.raises(AuthoritiesError, match=complaint):
        Authorities(AuthorityFiles(str(tmp_path / "ca")), None, VirtualClock(), trust_in_tls=lambda pem: None)
