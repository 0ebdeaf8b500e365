"""Host ports: who is in whose way, and what happens to a port that two pods hold."""

from __future__ import annotations

import pytest

from mooring.scheduler.cache.pods import host_ports
from mooring.scheduler.cache.ports import HostPort, PortColumns
from tests.builders import pod


def ports(*texts: str) -> tuple[HostPort, ...]:
    return host_ports(pod(ports=texts).spec)


@pytest.mark.parametrize(
    ("taken", "wanted", "is_conflict"),
    [
        ("80", "80", True),
        ("80", "81", False),
        ("80", "80/UDP", False),
        ("80", "127.0.0.1:80", True),
        ("127.0.0.1:80", "80", True),
        ("127.0.0.1:80", "127.0.0.1:80", True),
        ("127.0.0.1:80", "10.0.0.1:80", False),
        ("0.0.0.0:80", "10.0.0.1:80", True),
        ("10.0.0.1:53/UDP", "10.0.0.1:53/UDP", True),
        ("10.0.0.1:53/UDP", "10.0.0.1:53/TCP", False),
    ],
)
def test_who_is_in_whose_way(taken: str, wanted: str, is_conflict: bool) -> None:
    columns = PortColumns()
    columns.take(2, ports(taken))
    assert columns.conflicts(ports(wanted), height=4).tolist() == [False, False, is_conflict, False]
    assert [columns.conflicts_at(ports(wanted), row) for row in range(4)] == [False, False, is_conflict, False]


def test_any_of_several_ports_is_enough() -> None:
    columns = PortColumns()
    columns.take(0, ports("80"))
    columns.take(1, ports("443"))
    assert columns.conflicts(ports("443", "80"), height=3).tolist() == [True, True, False]


def test_a_freed_port_is_free() -> None:
    columns = PortColumns()
    columns.take(0, ports("80", "443"))
    columns.free(0, ports("80"))
    assert not columns.conflicts_at(ports("80"), 0)
    assert columns.conflicts_at(ports("443"), 0)
    columns.free(0, ports("80"))
    columns.free(1, ports("443"))
    assert columns.conflicts_at(ports("443"), 0), "what a row does not hold cannot be freed there"


def test_a_port_that_two_pods_hold_is_free_when_the_first_of_them_goes() -> None:
    columns = PortColumns()
    columns.take(0, ports("80"))
    columns.take(0, ports("80"))
    columns.free(0, ports("80"))
    assert not columns.conflicts_at(ports("80"), 0), "kube-scheduler v1.36 does not count them either"


def test_which_exact_ports_are_taken() -> None:
    columns = PortColumns()
    columns.take(0, ports("80", "127.0.0.1:443"))
    assert columns.taken_of(0, ports("80", "443", "127.0.0.1:443")) == ports("80", "127.0.0.1:443")
    assert columns.taken_of(1, ports("80")) == ()
